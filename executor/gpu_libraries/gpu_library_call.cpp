#include "executor/gpu_libraries/gpu_library_call.h"

#include <algorithm>
#include <limits>

#include "executor/device/library_task.h"
#include "executor/gpu_driver/gpu_task.h"
#include "ir/error.h"
#include "ops/nn/window.h"
#include "passes/layouts.h"

namespace fluid {
namespace {

constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();

/// The shape of a tensor, viewed as a batch of matrices.
struct Matrices {
  int64_t count = 1, rows = 1, columns = 1;

  explicit Matrices(const Shape& shape)
      : rows(shape[shape.size() - 2].size), columns(shape.back().size) {
    for (size_t d = 0; d + 2 < shape.size(); ++d) count *= shape[d].size;
  }
  /// Merges the batch dimension into the rows: one matrix of count * rows rows.
  void fold() { rows *= std::exchange(count, 1); }
  int64_t elements() const { return rows * columns; }
};

bool same_outer(const Shape& a, const Shape& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin());
}

constexpr int kChannelAxis = 3;  ///< C of NCHW, counted from the end (W is 1)

struct Kind {
  std::string_view kernel;
  FluidGpuDirection direction;
};

constexpr Kind kKinds[] = {{"cudnn.conv2d", fluid_gpu_forward},
                           {"cudnn.conv2d_grad_input", fluid_gpu_data_gradient},
                           {"cudnn.conv2d_grad_filter", fluid_gpu_filter_gradient}};

const Kind* kind_of(const ir::Op& op) {
  const Kind* kind = std::ranges::find_if(
      kKinds, [&](const Kind& k) { return lists_kernel(op, KernelDevice::cuda, k.kernel); });
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

/// Whether NCHW and NHWC order the elements of `type` differently in memory.
bool layouts_differ(const Type& type) {
  const Shape& s = type.shape;
  return !s[1].is(1) && !(s[2].is(1) && s[3].is(1));
}

/// Whether images and feature maps are NHWC. Returns nullopt if their layouts differ from each
/// other, or are neither NCHW nor NHWC. If NCHW and NHWC are the same in memory, returns true for
/// half precision, because cuDNN's half-precision kernels use NHWC.
std::optional<bool> channels_last_of(const Tensors& tensors, bool half) {
  std::optional<bool> last;
  for (const Type* type : {&tensors.images, &tensors.maps}) {
    if (type->layout && type->layout != channels_last()) return std::nullopt;
    if (!layouts_differ(*type)) continue;
    const bool is_channels_last = type->layout.has_value();
    if (last && *last != is_channels_last) return std::nullopt;
    last = is_channels_last;
  }
  return last.value_or(half);
}

bool fits(const Type& type) {
  return std::ranges::all_of(type.shape, [](const Dim& d) { return d.size <= kMaxExtent; });
}

GpuTask task_of(const LibraryBody& body, const ir::Op& fused, int64_t batch) {
  if (const auto task = gpu_matmul(*body.head, body.epilogue, batch)) return *task;
  const auto convolution = gpu_convolution(*body.head, body.epilogue, batch);
  check(convolution.has_value(), "no GPU library provides the kernel of '" + fused.name + "'");
  return *convolution;
}

/// Rounds the address of a workspace up to a multiple of FLUID_GPU_WORKSPACE_ALIGNMENT.
void* aligned_workspace(void* start) {
  const auto address = reinterpret_cast<uintptr_t>(start);
  const auto remainder = address % FLUID_GPU_WORKSPACE_ALIGNMENT;
  const auto padding = remainder == 0 ? 0 : FLUID_GPU_WORKSPACE_ALIGNMENT - remainder;
  return static_cast<std::byte*>(start) + padding;
}

}  // namespace

std::optional<FluidGpuMatmul> gpu_matmul(const ir::Op& op, const EpilogueOps& epilogue,
                                         int64_t batch) {
  if (!lists_kernel(op, KernelDevice::cuda, kGpuMatmulKernel)) return std::nullopt;
  const auto task = library_task(op, epilogue, batch, 1, EpilogueSupport::addend);
  if (!task) return std::nullopt;
  const auto dtype = gpu_dtype(task->result.dtype);
  const Type &left = task->operands[0], &right = task->operands[1];
  if (!dtype || left.layout || right.layout || task->result.layout) return std::nullopt;
  const bool transpose_a = op.attrs.get<bool>("transpose_a");
  const bool transpose_b = op.attrs.get<bool>("transpose_b");
  Matrices a(left.shape), b(right.shape), result(task->result.shape);
  if (right.shape.size() == 2 && !transpose_a) {
    a.fold();
    result.fold();
  } else if (!same_outer(left.shape, right.shape)) {
    return std::nullopt;
  }
  const int64_t k = transpose_a ? a.rows : a.columns;
  if (std::max({result.rows, result.columns, k}) > kMaxExtent) return std::nullopt;
  if (result.count > FLUID_GPU_MAX_MATMUL_BATCH) return std::nullopt;
  const bool epilogue_in_f64 = task->epilogue.bias.has_value() || task->epilogue.relu;
  if (*dtype == fluid_gpu_f64 && epilogue_in_f64) return std::nullopt;
  return FluidGpuMatmul{.operands = *dtype,
                        .result = *dtype,
                        .transpose_a = transpose_a,
                        .transpose_b = transpose_b,
                        .has_addend = task->epilogue.addend,
                        .bias = task->epilogue.bias.has_value(),
                        .relu = task->epilogue.relu,
                        .m = result.rows,
                        .n = result.columns,
                        .k = k,
                        .a_row_stride = a.columns,
                        .b_row_stride = b.columns,
                        .result_row_stride = result.columns,
                        .count = result.count,
                        .a_matrix_stride = a.elements(),
                        .b_matrix_stride = b.elements(),
                        .result_matrix_stride = result.elements()};
}

std::string_view gpu_convolution_kernel_name(const ir::Op& op) {
  const Kind* kind = kind_of(op);
  return kind != nullptr ? kind->kernel : std::string_view();
}

std::optional<FluidGpuConvolution> gpu_convolution(const ir::Op& op, const EpilogueOps& epilogue,
                                                   int64_t batch) {
  const Kind* kind = kind_of(op);
  if (kind == nullptr) return std::nullopt;
  const auto task = library_task(op, epilogue, batch, kChannelAxis, EpilogueSupport::addend);
  if (!task) return std::nullopt;
  const auto dtype = gpu_dtype(task->result.dtype);
  if (!dtype || *dtype == fluid_gpu_f64) return std::nullopt;
  const Tensors tensors = tensors_of(kind->direction, *task);
  const auto& [images, filters, maps] = tensors;
  const bool biased = task->epilogue.bias.has_value();
  // Rejects a relu without a bias, which cuDNN supports only by run-time compilation.
  if (task->epilogue.relu && !biased) return std::nullopt;
  if (biased && kind->direction != fluid_gpu_forward) return std::nullopt;
  if (filters.layout || !fits(images) || !fits(filters) || !fits(maps)) return std::nullopt;
  const auto last = channels_last_of(tensors, is_half_precision(task->result.dtype));
  const Shape &x = images.shape, &w = filters.shape, &y = maps.shape;
  const auto [down, across] = window_of(op.attrs, w[2].size, w[3].size);
  if (!last || down.before != down.after || across.before != across.after) return std::nullopt;
  return FluidGpuConvolution{.direction = kind->direction,
                             .dtype = *dtype,
                             .channels_last = *last,
                             .has_addend = task->epilogue.addend,
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

int64_t planned_workspace(const ir::Op& fused) {
  return fused.attrs.get<int64_t>("workspace_bytes");
}

GpuLibraryCall::GpuLibraryCall(const ir::Op& fused, int64_t batch, bool tf32)
    : workspace(planned_workspace(fused) - planned_workspace(0)) {
  const LibraryBody body(fused);
  task = task_of(body, fused, batch);
  std::visit(
      [&](auto& t) {
        t.tf32 = tf32;
        has_addend = t.has_addend != 0;
        has_bias = t.bias != 0;
      },
      task);
  buffers = body.buffers;
  buffers.push_back(fused.operands.size());
}

FluidGpuOperands GpuLibraryCall::operands(const std::vector<void*>& addresses,
                                          void* workspace_start) const {
  const auto at = [&](size_t i) { return addresses[buffers[i]]; };
  return {.a = at(0),
          .b = at(1),
          .addend = has_addend ? at(2) : nullptr,
          .bias = has_bias ? at(2) : nullptr,
          .result = at(buffers.size() - 1),
          .workspace = aligned_workspace(workspace_start)};
}

}  // namespace fluid
