#include "executor/gpu/gpu_convolution.h"

#include <algorithm>
#include <limits>

#include "executor/device/library_task.h"
#include "executor/gpu/gpu_number.h"
#include "ops/nn/window.h"
#include "passes/layouts.h"

namespace fluid {
namespace {

constexpr int64_t kMostExtent = std::numeric_limits<int32_t>::max();
constexpr int kChannelAxis = 3;  ///< from the end

struct Kind {
  std::string_view kernel;
  FluidGpuDirection direction;
};

constexpr Kind kKinds[] = {{"cudnn.conv2d", fluid_gpu_forward},
                           {"cudnn.conv2d_grad_input", fluid_gpu_data_gradient},
                           {"cudnn.conv2d_grad_filter", fluid_gpu_filter_gradient}};

const Kind* kind_of(const ir::Op& op) {
  const Kind* kind = std::ranges::find_if(
      kKinds, [&](const Kind& k) { return names_kernel(op, On::cuda, k.kernel); });
  return kind != std::end(kKinds) ? kind : nullptr;
}

struct Tensors {
  const Type &images, &filters, &maps;
};

Tensors tensors_of(FluidGpuDirection direction, const LibraryTask& task) {
  const Type &a = task.operands[0], &b = task.operands[1], &result = task.result;
  if (direction == fluid_gpu_data_gradient) return {result, b, a};
  if (direction == fluid_gpu_filter_gradient) return {a, result, b};
  return {a, b, result};
}

/// Whether NCHW and NHWC differ in memory.
bool has_choice(const Type& type) {
  const Shape& s = type.shape;
  return !s[1].is(1) && !(s[2].is(1) && s[3].is(1));
}

/// Whether images and feature maps are NHWC. Nothing when they differ or have another layout. If
/// both layouts are equal in memory, half precision uses NHWC, which libraries compute in.
std::optional<bool> channels_last_of(const Tensors& tensors, bool half) {
  std::optional<bool> last;
  for (const Type* type : {&tensors.images, &tensors.maps}) {
    if (type->layout && type->layout != channels_last()) return std::nullopt;
    if (!has_choice(*type)) continue;
    const bool this_one = type->layout.has_value();
    if (last && *last != this_one) return std::nullopt;
    last = this_one;
  }
  return last.value_or(half);
}

bool fits(const Type& type) {
  return std::ranges::all_of(type.shape, [](const Dim& d) { return d.size <= kMostExtent; });
}

}  // namespace

std::string_view gpu_convolution_kernel(const ir::Op& op) {
  const Kind* kind = kind_of(op);
  return kind != nullptr ? kind->kernel : std::string_view();
}

std::optional<FluidGpuConvolution> gpu_convolution(const ir::Op& op, const Chain& epilogue,
                                                   int64_t batch) {
  const Kind* kind = kind_of(op);
  if (kind == nullptr) return std::nullopt;
  const auto task = library_task(op, epilogue, batch, kChannelAxis, true);
  if (!task) return std::nullopt;
  const auto number = gpu_number(task->result.dtype);
  if (!number || *number == fluid_gpu_f64) return std::nullopt;
  const Tensors tensors = tensors_of(kind->direction, *task);
  const auto& [images, filters, maps] = tensors;
  const bool biased = task->epilogue.bias.has_value();
  // CuDNN would compile a kernel for it at run time.
  if (task->epilogue.relu && !biased) return std::nullopt;
  if (biased && kind->direction != fluid_gpu_forward) return std::nullopt;
  if (filters.layout || !fits(images) || !fits(filters) || !fits(maps)) return std::nullopt;
  const auto last = channels_last_of(tensors, is_half(task->result.dtype));
  const Shape &x = images.shape, &w = filters.shape, &y = maps.shape;
  const auto [down, across] = window_of(op.attrs, w[2].size, w[3].size);
  if (!last || down.before != down.after || across.before != across.after) return std::nullopt;
  return FluidGpuConvolution{.direction = kind->direction,
                             .number = *number,
                             .channels_last = *last,
                             .adds = task->epilogue.addend,
                             .bias = biased,
                             .relu = task->epilogue.relu,
                             .groups = static_cast<int32_t>(op.attrs.get<int64_t>("groups")),
                             .images = x[0].size,
                             .channels = x[1].size,
                             .height = x[2].size,
                             .width = x[3].size,
                             .filters = w[0].size,
                             .filter_height = w[2].size,
                             .filter_width = w[3].size,
                             .map_height = y[2].size,
                             .map_width = y[3].size,
                             .stride = {down.stride, across.stride},
                             .dilation = {down.dilation, across.dilation},
                             .padding = {down.before, across.before}};
}

}  // namespace fluid
