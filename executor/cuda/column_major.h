#pragma once

#include <cstdint>
#include <string>

#include "executor/gpu_driver/backend_table.h"

namespace fluid::cuda {

/// Layout of a strided batch of column-major matrices, in cuBLASLt's terms.
struct ColumnMajorLayout {
  int64_t rows = 0, columns = 0;
  int64_t leading_dimension = 0;  ///< distance between the starts of columns, in elements
  int64_t batch_stride = 0;       ///< distance between the starts of matrices, in elements
  bool operator==(const ColumnMajorLayout&) const = default;
};

/// A matmul of column-major matrices: result = op(first) op(second), where op() transposes its
/// operand or does nothing.
struct ColumnMajorMatmul {
  ColumnMajorLayout first, second, result;
  bool transpose_first = false, transpose_second = false;
  bool operator==(const ColumnMajorMatmul&) const = default;
};

/// Returns why the matmul is invalid, or "" if it is valid.
std::string validation_error(const FluidGpuMatmul& matmul);

/// Converts a row-major matmul to a column-major one. Read as column-major, a row-major matrix is
/// its transpose. So c = a b is computed as c' = b' a', where `first` is b and `second` is a. A
/// bias per column becomes a bias per row.
ColumnMajorMatmul column_major(const FluidGpuMatmul& matmul);

}  // namespace fluid::cuda
