#pragma once

#include <cstdint>
#include <string>

#include "executor/gpu_driver/backend_table.h"

namespace fluid::cuda {

/// A batch of column-major matrices, as cuBLASLt expects.
struct ColumnMajor {
  int64_t rows = 0, columns = 0;
  int64_t leading = 0;  ///< elements between the starts of columns
  int64_t step = 0;     ///< elements between the starts of matrices
  bool operator==(const ColumnMajor&) const = default;
};

/// result = op(first) op(second), all column-major.
struct ColumnMajorProduct {
  ColumnMajor first, second, result;
  bool transpose_first = false, transpose_second = false;
  bool operator==(const ColumnMajorProduct&) const = default;
};

/// Why the matmul is invalid, or "".
std::string fault_of(const FluidGpuMatmul& product);

/// The matmul with all matrices transposed: a row-major matrix read as column-major is its
/// transpose. So c = a b becomes c' = b' a'; `first` is b, and a bias per column becomes one per
/// row.
ColumnMajorProduct column_major(const FluidGpuMatmul& product);

}  // namespace fluid::cuda
