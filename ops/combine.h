#pragma once

#include <cstdint>

namespace fluid {

/// Operator that combines the elements of a reduction.
enum class Combine : uint8_t {
  sum,
  prod,
  max,  ///< NaN if any element is NaN, as in PyTorch
  min,
  /// Has two results: the maximum, and the row-major index of the first maximum among the reduced
  /// elements. The index may have any integer dtype. NaN counts as the largest value.
  argmax,
};

}  // namespace fluid
