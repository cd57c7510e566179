#include "executor/cpu_libraries/direct_problem.h"

#include "executor/cpu_libraries/divide_up.h"

namespace fluid {
namespace {

DirectAxis convolution_axis(const WindowAxis& window, int64_t in, int64_t out) {
  DirectPhase phase{.first = 0, .step = 1, .count = out, .base = 0, .base_step = window.stride};
  for (int64_t t = 0; t < window.kernel; ++t) phase.taps.push_back({t, t * window.dilation});
  return {.source = in,
          .result = out,
          .low = -window.before,
          .padded = (out - 1) * window.stride + window.effective_kernel(),
          .phases = {std::move(phase)}};
}

// Element i of the input is read by tap t of window (i + before - t * dilation) / stride, if that
// is an integer. (i + before) modulo the stride is the phase.
DirectAxis input_gradient_axis(const WindowAxis& window, int64_t in, int64_t out) {
  const int64_t stride = window.stride;
  const int64_t farthest = (window.effective_kernel() - 1) / stride;
  const int64_t low = window.before / stride - farthest;
  DirectAxis axis{.source = out,
                  .result = in,
                  .low = low,
                  .padded = (in - 1 + window.before) / stride - low + 1,
                  .phases = {}};
  for (int64_t residue = 0; residue < stride; ++residue) {
    const int64_t first = ((residue - window.before) % stride + stride) % stride;
    if (first >= in) continue;
    DirectPhase phase{.first = first,
                      .step = stride,
                      .count = divide_up(in - first, stride),
                      .base = (first + window.before) / stride - low,
                      .base_step = 1};
    for (int64_t t = 0; t < window.kernel; ++t) {
      const int64_t distance = t * window.dilation;
      if (distance % stride == residue) phase.taps.push_back({t, -(distance / stride)});
    }
    axis.phases.push_back(std::move(phase));
  }
  return axis;
}

}  // namespace

DirectAxis direct_axis(const WindowAxis& window, int64_t in, int64_t out, bool input_gradient) {
  return input_gradient ? input_gradient_axis(window, in, out) : convolution_axis(window, in, out);
}

DirectProblem direct_problem(const ConvolutionTask& task) {
  const bool input_gradient = task.direction == ConvDirection::input_gradient;
  return {.direction = task.direction,
          .images = task.in[0].size,
          .y = direct_axis(task.window.y, task.in[2].size, task.out[2].size, input_gradient),
          .x = direct_axis(task.window.x, task.in[3].size, task.out[3].size, input_gradient),
          .out_channels = task.filter[0].size,
          .in_channels = task.filter[1].size,
          .kernel_y = task.filter[2].size,
          .kernel_x = task.filter[3].size,
          .bias = task.bias,
          .relu = task.relu};
}

}  // namespace fluid
