#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "executor/device/variables.h"

namespace fluid {

/// State of dynamic loss scaling after a step.
struct LossScaling {
  double scale = 1;
  int64_t skipped = 0;  ///< total number of steps skipped because of non-finite gradients
};

/// Snapshot of the loss scale, the skipped-step count and the learning rate after a step. Reading
/// the snapshot, unlike reading the variables, does not wait for the next step.
struct StepReport {
  static constexpr size_t kCellBytes = 8;  ///< bytes of the snapshot per reported variable
  static constexpr size_t kNumCells = 3;
  std::array<std::byte, kCellBytes* kNumCells> bytes = {};
};

/// A variable whose value each step copies into its StepReport.
struct ReportedVariable {
  size_t cell = 0;
  DType dtype = DType::f32;
  int64_t offset = 0;  ///< bytes from the start of the state region
  int64_t bytes() const { return size_of(dtype); }
};

/// Selects from `variables` the variables that each step of the recipe `recipe` reports.
std::vector<ReportedVariable> variables_to_report(const Variables& variables,
                                                  std::string_view recipe);

/// Reads the loss scaling state from the step report `report`. Returns nullopt if the loss is not
/// scaled.
std::optional<LossScaling> loss_scaling_in(std::byte* report,
                                           std::span<const ReportedVariable> reported);
/// Reads the learning rate of the step from the step report `report`. Returns nullopt if the recipe
/// has no learning-rate schedule.
std::optional<double> learning_rate_in(std::byte* report,
                                       std::span<const ReportedVariable> reported);

}  // namespace fluid
