#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ir/attr.h"

namespace fluid {

/// A state, f64[5], all ones at first: where the schedule "plateau" is. Between the steps of one
/// epoch and the next, PlateauRule moves it on.
inline constexpr std::string_view kPlateau = "plateau";
/// What its elements are: of the recipe's learning rate; 1 until a first figure has come; the best
/// figure; one more than the epochs since; one more than the epochs that are still waited for.
enum PlateauElement { kFactor, kUnseen, kBest, kBadEpochs, kCooldown, kPlateauElements };

/// The settings of a recipe's schedule "plateau": PyTorch's ReduceLROnPlateau, whose mode is min
/// and whose threshold is relative. A rate that would fall by less than 1e-8 stays.
struct PlateauRule {
  double lr = 0;
  double factor = 0;
  int64_t patience = 0;
  double threshold = 0;
  int64_t cooldown = 0;
  double min_lr = 0;

  /// Moves the state on by the figure of an epoch, the smaller the better. Whether the rate falls.
  bool take(double figure, std::span<double> state) const;
};

/// Absent when the `train` op with these attributes has another schedule, or none.
std::optional<PlateauRule> plateau_rule(const Attrs& train);

}  // namespace fluid
