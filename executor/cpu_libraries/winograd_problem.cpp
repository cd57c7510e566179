#include "executor/cpu_libraries/winograd_problem.h"

#include "ops/nn/window.h"
#include "passes/layouts.h"

namespace fluid {
namespace {

bool is_image(const Type& t) { return t.shape.size() == 4 && t.layout == channels_last(); }

WinogradAxis axis_of(const WindowAxis& window, const Dim& in, const Dim& out, bool rotated) {
  const WinogradAxis axis{in.size, out.size, window.before, window.after};
  if (!rotated) return axis;
  return {axis.out, axis.in, window.kernel - 1 - axis.before, window.kernel - 1 - axis.after};
}

bool fits(const WindowAxis& window) {
  const bool taps = window.kernel == 3 || window.kernel == 5;
  return taps && window.stride == 1 && window.dilation == 1 && window.before < window.kernel &&
         window.after < window.kernel;
}

}  // namespace

std::optional<WinogradProblem> winograd_problem(const WinogradKernelEntry& entry, const ir::Op& op,
                                                const EpilogueOps& chain, int64_t batch) {
  const bool computes_filter_gradient = entry.direction == ConvDirection::filter_gradient;
  const auto task = library_task(op, chain, batch, computes_filter_gradient ? 4 : 3);
  if (!task || !cpu_supports_winograd()) return std::nullopt;
  if (entry.direction != ConvDirection::forward && !chain.empty()) return std::nullopt;
  const DType dtype = task->result.dtype;
  if (dtype != DType::f32 && dtype != DType::bf16 && dtype != DType::f16) return std::nullopt;
  const Type& in =
      entry.direction == ConvDirection::input_gradient ? task->result : task->operands[0];
  const Type& w = computes_filter_gradient ? task->result : task->operands[1];
  const Type& out = entry.direction == ConvDirection::forward
                        ? task->result
                        : task->operands[computes_filter_gradient ? 1 : 0];
  if (!is_image(in) || !is_image(out) || w.layout) return std::nullopt;
  const Window2d window = window_of(op.attrs, w.shape[2].size, w.shape[3].size);
  if (!fits(window.y) || !fits(window.x) || window.y.kernel != window.x.kernel) return std::nullopt;
  if (op.attrs.get<int64_t>("groups") != 1) return std::nullopt;
  const WinogradVariant variant{dtype, static_cast<int>(window.y.kernel)};
  const bool rotated = entry.direction == ConvDirection::input_gradient;
  return WinogradProblem{.direction = entry.direction,
                         .variant = variant,
                         .images = in.shape[0].size,
                         .y = axis_of(window.y, in.shape[2], out.shape[2], rotated),
                         .x = axis_of(window.x, in.shape[3], out.shape[3], rotated),
                         .filter = {variant, w.shape[0].size, w.shape[1].size, rotated},
                         .bias = task->epilogue.bias.has_value(),
                         .relu = task->epilogue.relu};
}

}  // namespace fluid
