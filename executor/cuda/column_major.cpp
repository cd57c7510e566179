#include "executor/cuda/column_major.h"

#include <utility>

namespace fluid::cuda {
namespace {

/// Column-major layout that reads a row-major matrix as its transpose. `row`: row stride in
/// elements. `matrix`: batch stride in elements.
ColumnMajorLayout as_column_major(int64_t rows, int64_t columns, int64_t row, int64_t matrix) {
  return {.rows = columns, .columns = rows, .leading_dimension = row, .batch_stride = matrix};
}

ColumnMajorLayout stored_a(const FluidGpuMatmul& p) {
  return p.transpose_a != 0 ? as_column_major(p.k, p.m, p.a_row_stride, p.a_matrix_stride)
                            : as_column_major(p.m, p.k, p.a_row_stride, p.a_matrix_stride);
}

ColumnMajorLayout stored_b(const FluidGpuMatmul& p) {
  return p.transpose_b != 0 ? as_column_major(p.n, p.k, p.b_row_stride, p.b_matrix_stride)
                            : as_column_major(p.k, p.n, p.b_row_stride, p.b_matrix_stride);
}

ColumnMajorLayout stored_result(const FluidGpuMatmul& p) {
  return as_column_major(p.m, p.n, p.result_row_stride, p.result_matrix_stride);
}

bool is_half_precision(FluidGpuDtype dtype) {
  return dtype == fluid_gpu_f16 || dtype == fluid_gpu_bf16;
}

/// Whether consecutive columns or matrices overlap in memory.
bool overlaps(const ColumnMajorLayout& m, int64_t count) {
  return m.leading_dimension < m.rows ||
         (count > 1 && m.batch_stride < (m.columns - 1) * m.leading_dimension + m.rows);
}

}  // namespace

std::string validation_error(const FluidGpuMatmul& p) {
  for (const FluidGpuDtype dtype : {p.operands, p.result}) {
    if (dtype < fluid_gpu_f64 || dtype > fluid_gpu_bf16) return "its dtype is invalid";
  }
  if (p.result != p.operands && !(is_half_precision(p.operands) && p.result == fluid_gpu_f32)) {
    return "the dtype of its result is neither that of its operands nor f32 for half-precision "
           "operands";
  }
  if (p.m < 1 || p.n < 1 || p.k < 1) return "a matrix has no elements";
  if (p.count < 1 || p.count > FLUID_GPU_MAX_MATMUL_BATCH)
    return "its number of matrices is out of range";
  if (p.has_addend != 0 && (p.bias != 0 || p.relu != 0))
    return "it has an addend and a bias or a relu";
  if (p.operands == fluid_gpu_f64 && (p.bias != 0 || p.relu != 0)) {
    return "it has a bias or a relu in f64";
  }
  for (const ColumnMajorLayout& matrix : {stored_a(p), stored_b(p), stored_result(p)}) {
    if (overlaps(matrix, p.count)) return "rows or matrices overlap";
  }
  return "";
}

ColumnMajorMatmul column_major(const FluidGpuMatmul& p) {
  return {.first = stored_b(p),
          .second = stored_a(p),
          .result = stored_result(p),
          .transpose_first = p.transpose_b != 0,
          .transpose_second = p.transpose_a != 0};
}

}  // namespace fluid::cuda
