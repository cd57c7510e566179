#pragma once

#include <cstdint>
#include <span>

#include "frontend/readers/sample_source.h"

namespace fluid {

/// A transform that mixes each sample of a global batch with the previous sample. The first sample
/// is mixed with the last one.
class BatchTransform {
 public:
  virtual ~BatchTransform() = default;
  /// Mixes rows 1 to `rows` of each buffer of `columns` with the previous row. Row 0 is the sample
  /// before row 1 in the global batch, and does not change. Skips null columns. `first`: position
  /// in the epoch of the global batch's first sample. It determines the random choices, so all
  /// ranks make the same ones.
  virtual void apply(std::span<std::byte* const> columns, int64_t rows,
                     const AugmentationSeed& seed, int64_t first) const = 0;
};

}  // namespace fluid
