#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "executor/device/variables.h"

namespace fluid {

/// State of dynamic loss scaling after a step.
struct LossScaling {
  double scale = 1;
  int64_t skipped = 0;  ///< total number of steps skipped because of non-finite gradients
};

/// Copies of the loss scale, the skipped-step count and the learning rate after a step. Reading
/// them does not wait for the next step, unlike reading the variables.
struct StepReport {
  static constexpr size_t kCell = 8;  ///< bytes per variable
  static constexpr size_t kCells = 3;
  std::array<std::byte, kCell* kCells> bytes = {};
};

/// A variable that is copied into the report.
struct Reported {
  size_t cell = 0;
  DType dtype = DType::f32;
  int64_t offset = 0;  ///< bytes from the start of the state region
  int64_t bytes() const { return size_of(dtype); }
};

/// The reported variables among a program's `variables`.
std::vector<Reported> reported(const Variables& variables);

/// Reads the loss scaling state from the report at `from`. Returns nullopt when the loss is not
/// scaled.
std::optional<LossScaling> loss_scaling_in(std::byte* from, std::span<const Reported> reported);
/// Reads the learning rate of the step's update. Returns nullopt when the recipe has no schedule.
std::optional<double> learning_rate_in(std::byte* from, std::span<const Reported> reported);

}  // namespace fluid
