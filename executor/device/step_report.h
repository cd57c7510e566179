#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "executor/device/variables.h"

namespace fluid {

/// Where dynamic loss scaling is after a step.
struct LossScaling {
  double scale = 1;
  int64_t skipped = 0;  ///< steps whose gradients were not finite, in all
};

/// What a step tells of training besides its outputs, so that nobody has to wait for the next one
/// to read it from the variables: these, as the step left them.
struct StepReport {
  static constexpr size_t kCell = 8;  ///< bytes for each variable
  static constexpr size_t kCells = 3;
  std::array<std::byte, kCell* kCells> bytes = {};
};

/// A variable that is reported.
struct Reported {
  size_t cell = 0;
  DType dtype = DType::f32;
  int64_t offset = 0;  ///< in the state region
  int64_t bytes() const { return size_of(dtype); }
};

/// Those that a program has.
std::vector<Reported> reported(const Variables& variables);

/// Of a report at `from`; nothing where the loss is not scaled.
std::optional<LossScaling> loss_scaling_in(std::byte* from, std::span<const Reported> reported);
/// Of the update; nothing where there is no schedule.
std::optional<double> learning_rate_in(std::byte* from, std::span<const Reported> reported);

}  // namespace fluid
