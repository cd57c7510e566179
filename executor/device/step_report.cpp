#include "executor/device/step_report.h"

#include <algorithm>
#include <string_view>

#include "ir/tensor.h"
#include "passes/loss_scale.h"
#include "passes/recipe.h"

namespace fluid {
namespace {

constexpr size_t kScale = 0, kSkipped = 1, kRate = 2;
constexpr std::array<std::string_view, StepReport::kCells> kNames = {kLossScale, kSkippedSteps,
                                                                     kLearningRate};

std::optional<double> figure(std::byte* from, std::span<const Reported> reported, size_t cell) {
  const auto found = std::ranges::find(reported, cell, &Reported::cell);
  if (found == reported.end()) return std::nullopt;
  return Tensor::view(found->dtype, {}, from + cell * StepReport::kCell).item();
}

}  // namespace

std::vector<Reported> reported(const Variables& variables) {
  std::vector<Reported> found;
  for (size_t cell = 0; cell < kNames.size(); ++cell) {
    const Variable* v = variables.find(kNames[cell]);
    if (v != nullptr) found.push_back({cell, v->type.dtype, v->offset});
  }
  return found;
}

std::optional<LossScaling> loss_scaling_in(std::byte* from, std::span<const Reported> reported) {
  const auto scale = figure(from, reported, kScale), skipped = figure(from, reported, kSkipped);
  if (!scale || !skipped) return std::nullopt;
  return LossScaling{.scale = *scale, .skipped = static_cast<int64_t>(*skipped)};
}

std::optional<double> learning_rate_in(std::byte* from, std::span<const Reported> reported) {
  return figure(from, reported, kRate);
}

}  // namespace fluid
