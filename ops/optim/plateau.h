#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ir/attr.h"

namespace fluid {

/// Name of the state of schedules "plateau" and "manual": f64[5], initially all ones. PlateauRule
/// updates it after each epoch; Executor::set_learning_rate() sets element kFactor.
inline constexpr std::string_view kPlateau = "plateau";
/// Name of the schedule whose rate Executor::set_learning_rate() sets.
inline constexpr std::string_view kManual = "manual";
/// Elements of the state kPlateau. kFactor: factor of the recipe's learning rate. kUnseen: 1 before
/// the first epoch's metric. kBest: the best metric. kBadEpochs: 1 + epochs since the best metric.
/// kCooldown: 1 + remaining cooldown epochs.
enum PlateauElement { kFactor, kUnseen, kBest, kBadEpochs, kCooldown, kPlateauElements };

/// Settings of schedule "plateau", which follows PyTorch's ReduceLROnPlateau with mode "min" and
/// threshold mode "rel". A decrease of the learning rate by less than 1e-8 is skipped.
struct PlateauRule {
  double lr = 0;
  double factor = 0;
  int64_t patience = 0;
  double threshold = 0;
  int64_t cooldown = 0;
  double min_lr = 0;

  /// Updates the state with an epoch's metric (smaller is better). Returns whether the learning
  /// rate falls.
  bool take(double figure, std::span<double> state) const;
};

/// Returns nullopt when the `train` op with these attributes has another schedule or none.
std::optional<PlateauRule> plateau_rule(const Attrs& train);

}  // namespace fluid
