#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/attr.h"

namespace fluid {

/// Name of the state variable of schedules "plateau" and "manual": f64[5], initially all ones.
/// PlateauRule::update() updates it after each epoch; Executor::set_learning_rate() sets element
/// kFactor.
inline constexpr std::string_view kPlateau = "plateau";
/// Name of the schedule whose learning rate Executor::set_learning_rate() sets.
inline constexpr std::string_view kManualSchedule = "manual";
/// Indices into the state variable kPlateau. kFactor: current learning rate / initial learning
/// rate. kNoMetricYet: 1 before the first epoch's metric. kBest: the best metric. kBadEpochs: 1 +
/// number of epochs since the best metric. kCooldown: 1 + number of remaining cooldown epochs. The
/// counters are offset by 1, because a program declares one initial value for all elements, and
/// kFactor starts at 1.
enum PlateauElement { kFactor, kNoMetricYet, kBest, kBadEpochs, kCooldown, kPlateauElements };

/// Settings of schedule "plateau", which works like PyTorch's ReduceLROnPlateau. A reduction of the
/// learning rate by 1e-8 or less is skipped.
struct PlateauRule {
  double lr = 0;
  std::string metric = {};              ///< name of the monitored output; empty: the loss
  bool maximizes = false;               ///< whether a larger metric is better
  bool has_absolute_threshold = false;  ///< whether `threshold` is a difference, not a fraction
  double factor = 0;
  int64_t patience = 0;
  double threshold = 0;
  int64_t cooldown = 0;
  double min_lr = 0;

  /// Whether metric `value` is better than `best`.
  bool is_better(double value, double best) const;
  /// Updates `state` after an epoch whose metric is `value`. Returns whether the learning rate was
  /// reduced.
  bool update(double value, std::span<double> state) const;
  /// Resets the metric statistics of `state`, but not the learning rate. For training that
  /// continues with another metric.
  static void reset_metric(std::span<double> state);
};

/// Reads the settings of schedule "plateau" from the attributes of a `train` op; nullopt if the op
/// has another schedule.
std::optional<PlateauRule> plateau_rule(const Attrs& train_attrs);

}  // namespace fluid
