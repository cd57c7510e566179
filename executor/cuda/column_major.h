#pragma once

#include <cstdint>
#include <string>

#include "executor/gpu/backend_table.h"

namespace fluid::cuda {

/// Matrices whose columns' elements follow each other in memory, as cuBLASLt thinks of them.
struct ColumnMajor {
  int64_t rows = 0, columns = 0;
  int64_t leading = 0;  ///< elements from a column to the next
  int64_t step = 0;     ///< from a matrix to the next
  bool operator==(const ColumnMajor&) const = default;
};

/// result = op(first) op(second), column by column.
struct ColumnMajorProduct {
  ColumnMajor first, second, result;
  bool transpose_first = false, transpose_second = false;
  bool operator==(const ColumnMajorProduct&) const = default;
};

/// Why there can be no such product, or "".
std::string fault_of(const FluidGpuProduct& product);

/// The same product with all matrices transposed, as row-major ones are when they are read by
/// columns: c = a b becomes c' = b' a'. So `first` is b, and a number a column is one a row.
ColumnMajorProduct column_major(const FluidGpuProduct& product);

}  // namespace fluid::cuda
