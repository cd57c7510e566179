#pragma once

#include <cstdint>
#include <span>

#include "frontend/readers/sample_source.h"

namespace fluid {

/// A transform that mixes each sample of a batch with the one before it; the first sample of a
/// global batch with the last one.
class BatchMix {
 public:
  virtual ~BatchMix() = default;
  /// Mixes rows 1 to `rows` of each buffer of `columns` with the row before. Row 0 is the sample
  /// that precedes row 1 in the global batch; it stays as it is. Skips null columns. `first` is the
  /// position in the epoch of the global batch's first sample: all ranks draw the same.
  virtual void apply(std::span<std::byte* const> columns, int64_t rows, const Draw& draw,
                     int64_t first) const = 0;
};

}  // namespace fluid
