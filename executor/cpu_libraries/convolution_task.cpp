#include "executor/cpu_libraries/convolution_task.h"

#include "passes/layouts.h"

namespace fluid {
namespace {

/// Images of one channel are channels-last in either layout.
bool is_channels_last(const Type& t) {
  return t.shape.size() == 4 && (t.layout == channels_last() || (!t.layout && t.shape[1].is(1)));
}

}  // namespace

std::optional<ConvolutionTask> convolution_task(ConvDirection direction, const ir::Op& op,
                                                const EpilogueOps& epilogue, int64_t batch) {
  const bool filter_gradient = direction == ConvDirection::filter_gradient;
  const auto task = library_task(op, epilogue, batch, filter_gradient ? 4 : 3);
  if (!task) return std::nullopt;
  if (direction != ConvDirection::forward && !epilogue.empty()) return std::nullopt;
  const bool forward = direction == ConvDirection::forward;
  const Type& in = direction == ConvDirection::input_gradient ? task->result : task->operands[0];
  const Type& filter = filter_gradient ? task->result : task->operands[1];
  const Type& out = forward ? task->result : task->operands[filter_gradient ? 1 : 0];
  if (!is_channels_last(in) || !is_channels_last(out) || filter.layout) return std::nullopt;
  return ConvolutionTask{.direction = direction,
                         .dtype = task->result.dtype,
                         .in = in.shape,
                         .filter = filter.shape,
                         .out = out.shape,
                         .window = window_of(op.attrs, filter.shape[2].size, filter.shape[3].size),
                         .groups = op.attrs.get<int64_t>("groups"),
                         .bias = task->epilogue.bias.has_value(),
                         .relu = task->epilogue.relu};
}

}  // namespace fluid
