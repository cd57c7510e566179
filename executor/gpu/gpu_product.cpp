#include "executor/gpu/gpu_product.h"

#include <algorithm>
#include <limits>

#include "executor/device/library_task.h"
#include "executor/gpu/gpu_number.h"

namespace fluid {
namespace {

constexpr int64_t kMostExtent = std::numeric_limits<int32_t>::max();

/// A tensor as a batch of matrices.
struct Matrices {
  int64_t count = 1, rows = 1, columns = 1;

  explicit Matrices(const Shape& shape)
      : rows(shape[shape.size() - 2].size), columns(shape.back().size) {
    for (size_t d = 0; d + 2 < shape.size(); ++d) count *= shape[d].size;
  }
  /// Merges the batch into the rows of one matrix.
  void fold() { rows *= std::exchange(count, 1); }
  int64_t elements() const { return rows * columns; }
};

bool same_outer(const Shape& a, const Shape& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin());
}

}  // namespace

std::optional<FluidGpuMatmul> gpu_product(const ir::Op& op, const Chain& epilogue, int64_t batch) {
  if (!names_kernel(op, On::cuda, kGpuProductKernel)) return std::nullopt;
  const auto task = library_task(op, epilogue, batch, 1, true);
  if (!task) return std::nullopt;
  const auto number = gpu_number(task->result.dtype);
  const Type &left = task->operands[0], &right = task->operands[1];
  if (!number || left.layout || right.layout || task->result.layout) return std::nullopt;
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
  if (std::max({result.rows, result.columns, k}) > kMostExtent) return std::nullopt;
  if (result.count > FLUID_GPU_MOST_PRODUCTS) return std::nullopt;
  const bool epilogue_in_f64 = task->epilogue.bias.has_value() || task->epilogue.relu;
  if (*number == fluid_gpu_f64 && epilogue_in_f64) return std::nullopt;
  return FluidGpuMatmul{.operands = *number,
                        .result = *number,
                        .transpose_a = transpose_a,
                        .transpose_b = transpose_b,
                        .adds = task->epilogue.addend,
                        .bias = task->epilogue.bias.has_value(),
                        .relu = task->epilogue.relu,
                        .m = result.rows,
                        .n = result.columns,
                        .k = k,
                        .a_row = a.columns,
                        .b_row = b.columns,
                        .result_row = result.columns,
                        .count = result.count,
                        .a_matrix = a.elements(),
                        .b_matrix = b.elements(),
                        .result_matrix = result.elements()};
}

}  // namespace fluid
