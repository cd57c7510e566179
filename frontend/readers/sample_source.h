#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/images/image.h"
#include "frontend/readers/dataset.h"
#include "frontend/readers/row_set.h"
#include "frontend/readers/sample_data.h"

namespace fluid {

/// Samples that are read by index. All members are const and may be called by several threads at
/// once.
class SampleSource : public SampleData {
 public:
  virtual int64_t samples() const = 0;
  /// Writes the columns of sample `sample` to the buffers `to`, one per column, each of
  /// Column::bytes(). Skips a column whose buffer is null. Throws UserError, which names the file
  /// and the record, if the sample cannot be read.
  virtual void read(int64_t sample, const AugmentationSeed& seed,
                    std::span<std::byte* const> to) const = 0;
  /// Writes column `column` of `count` samples from `first` on to `to`, of Column::bytes() each.
  /// Throws UserError as read() does.
  virtual void read_column(int64_t first, int64_t count, size_t column, std::byte* to) const;
  /// Returns the image in column `column`, a u8 column of shape [channels, height, width]. The
  /// height and width of the image may differ from those of the column.
  virtual Image image(int64_t sample, size_t column, const AugmentationSeed& seed) const;
  /// Returns the data, or null if it is not in memory.
  virtual const Dataset* in_memory() const { return nullptr; }
};

using SampleSourcePtr = std::shared_ptr<const SampleSource>;

/// Returns a source with the columns of `data`. Throws UserError for columns of different lengths.
SampleSourcePtr make_source(Dataset data);
/// Returns the samples of `source` at the given indices, in the given order.
SampleSourcePtr select_samples(SampleSourcePtr source, std::vector<int64_t> samples);
/// Returns the samples of `source` at the indices in `rows`, in ascending order.
SampleSourcePtr select_rows(SampleSourcePtr source, RowSet rows);
/// Returns the first `n` samples of `source`, or all if there are fewer.
SampleSourcePtr first_samples(SampleSourcePtr source, int64_t n);
/// Returns `source` with only the columns in `kept`, under their new names.
SampleSourcePtr select_columns(SampleSourcePtr source, std::vector<ColumnSelection> kept);
/// Returns the number of samples of `a` that have the same name() and source_index() as a
/// sample of `b`.
int64_t common_rows(const SampleSource& a, const SampleSource& b);

}  // namespace fluid
