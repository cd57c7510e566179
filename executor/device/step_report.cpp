#include "executor/device/step_report.h"

#include <algorithm>
#include <string_view>

#include "ir/tensor.h"
#include "ops/optim/recipes.h"
#include "passes/loss_scale.h"
#include "passes/recipe.h"

namespace fluid {
namespace {

constexpr size_t kScaleCell = 0, kSkippedCell = 1, kLearningRateCell = 2;
constexpr std::array<std::string_view, StepReport::kNumCells> kReportedNames = {
    kLossScale, kSkippedSteps, kLearningRate};

std::optional<double> read_cell(std::byte* from, std::span<const ReportedVariable> reported,
                                size_t cell) {
  const auto found = std::ranges::find(reported, cell, &ReportedVariable::cell);
  if (found == reported.end()) return std::nullopt;
  return Tensor::view(found->dtype, {}, from + cell * StepReport::kCellBytes).item();
}

}  // namespace

std::vector<ReportedVariable> variables_to_report(const Variables& variables,
                                                  std::string_view recipe) {
  std::vector<ReportedVariable> found;
  for (size_t cell = 0; cell < kReportedNames.size(); ++cell) {
    const Variable* v = variables.find(recipe_state(recipe, kReportedNames[cell]));
    if (v != nullptr) found.push_back({cell, v->type.dtype, v->offset});
  }
  return found;
}

std::optional<LossScaling> loss_scaling_in(std::byte* report,
                                           std::span<const ReportedVariable> reported) {
  const auto scale = read_cell(report, reported, kScaleCell),
             skipped = read_cell(report, reported, kSkippedCell);
  if (!scale || !skipped) return std::nullopt;
  return LossScaling{.scale = *scale, .skipped = static_cast<int64_t>(*skipped)};
}

std::optional<double> learning_rate_in(std::byte* report,
                                       std::span<const ReportedVariable> reported) {
  return read_cell(report, reported, kLearningRateCell);
}

}  // namespace fluid
