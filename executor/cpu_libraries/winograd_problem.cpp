#include "executor/cpu_libraries/winograd_problem.h"

#include "executor/cpu_libraries/avx512_support.h"

namespace fluid {
namespace {

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
                                                const EpilogueOps& epilogue, int64_t batch) {
  const auto task = convolution_task(entry.direction, op, epilogue, batch);
  if (!task || task->groups != 1 || !cpu_supports_avx512()) return std::nullopt;
  const DType dtype = task->dtype;
  if (dtype != DType::f32 && dtype != DType::bf16 && dtype != DType::f16) return std::nullopt;
  const Window2d& window = task->window;
  if (!fits(window.y) || !fits(window.x) || window.y.kernel != window.x.kernel) return std::nullopt;
  const WinogradVariant variant{dtype, static_cast<int>(window.y.kernel)};
  const bool rotated = entry.direction == ConvDirection::input_gradient;
  return WinogradProblem{.direction = entry.direction,
                         .variant = variant,
                         .images = task->in[0].size,
                         .y = axis_of(window.y, task->in[2], task->out[2], rotated),
                         .x = axis_of(window.x, task->in[3], task->out[3], rotated),
                         .filter = {variant, task->filter[0].size, task->filter[1].size, rotated},
                         .bias = task->bias,
                         .relu = task->relu};
}

}  // namespace fluid
