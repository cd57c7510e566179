#pragma once

#include "executor/cpu_libraries/winograd_planes.h"

namespace fluid {

/// Matrix products, one per plane: result = left x right, or result = left' x right for the
/// transpose of `left`. Each result is a sum over the terms in ascending order, whatever the other
/// sizes are.
struct WinogradProduct {
  WinogradPlanes left, right, result;
  int64_t planes = 0, rows = 0, terms = 0, columns = 0;
  bool transposes_left = false;  ///< whether `left` has a row per term, and a column per row
  bool accumulates = false;      ///< whether the products are added to `result`

  /// Number of blocks into which all results are divided.
  int64_t blocks() const;
};

/// Adds `rows` rows of plane 0 of `from` to those of `to`. Both have the shape `shape`.
void add_winograd(const WinogradPlanes& from, const WinogradPlanesShape& shape, int64_t rows,
                  const WinogradPlanes& to);

/// Computes blocks [begin, end) of the results on the calling thread. Needs AVX-512.
void multiply_winograd(const WinogradProduct& product, int64_t begin, int64_t end);

}  // namespace fluid
