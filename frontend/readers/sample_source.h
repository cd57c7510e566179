#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/images/image.h"
#include "frontend/readers/column_table.h"
#include "frontend/readers/dataset.h"
#include "ir/tensor.h"

namespace fluid {

class BatchMix;

/// A column of a SampleSource. `shape` is the shape of one sample.
struct Column {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape = {};

  int64_t numel() const;                                      ///< number of elements of one sample
  int64_t bytes() const { return numel() * size_of(dtype); }  ///< size in bytes of one sample
  std::string str() const;                                    ///< "image u8[3, 32, 32]"
};

/// Selects the random choices of an augmentation. A sample's choices depend only on the Draw and
/// on the index of the sample.
struct Draw {
  uint64_t seed = 0;
  int64_t epoch = 0;
};

/// The data of a Reader: samples that are read by index, with the same columns. All members are
/// const and may be called by several threads at once.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual int64_t samples() const = 0;
  virtual const std::vector<Column>& columns() const = 0;
  /// Writes the columns of sample `sample` to the buffers `to`, one per column, each of
  /// Column::bytes(). Skips a column whose buffer is null. Throws UserError, which names the file
  /// and the record, if the sample cannot be read.
  virtual void read(int64_t sample, const Draw& draw, std::span<std::byte* const> to) const = 0;
  /// Returns the image in column `column`, a u8 column of shape [channels, height, width]. The
  /// image may have another height and width than the column.
  virtual Image image(int64_t sample, size_t column, const Draw& draw) const;

  virtual std::string name() const = 0;  ///< file or data SPEC of the samples
  /// Index of `sample` in the data that name() names. Splits and selections keep this index.
  virtual int64_t row(int64_t sample) const { return sample; }
  /// Returns text that locates a sample: "line 7 of 't.csv'", "'cats/1.jpg'".
  virtual std::string location(int64_t sample) const;
  /// Returns location() of the first sample whose integer column `column` contains `value`. Returns
  /// "" if no sample does, or if a search would have to read the data from disk.
  virtual std::string find_location(const std::string& column, int64_t value) const;
  /// Names of the classes that the integers of column `column` stand for; empty: unknown.
  virtual std::vector<std::string> classes(const std::string& column) const;
  /// What was learned from the columns, or the table by which they are read; null: nothing.
  virtual ColumnTablePtr table() const { return nullptr; }
  virtual SkippedRecords skipped() const { return {}; }  ///< left out when the data was opened
  virtual const Dataset* in_memory() const { return nullptr; }  ///< null: not in memory
  virtual int64_t resident_bytes() const { return 0; }          ///< size in bytes of data in memory
  /// The transform of whole batches; null: none. Reader applies it to the batches.
  virtual const BatchMix* batch_mix() const { return nullptr; }

  const Column* find(std::string_view column) const;  ///< null if there is no such column
  /// Returns a Batch of all samples, whose tensors have types but no memory.
  Batch types() const;
};

using SampleSourcePtr = std::shared_ptr<const SampleSource>;

/// Returns a source with the columns of `data`. Throws UserError for columns of different lengths.
SampleSourcePtr make_source(Dataset data);
/// Returns the samples of `source` at the given indices, in the given order.
SampleSourcePtr select_samples(SampleSourcePtr source, std::vector<int64_t> samples);
/// Returns the first `n` samples of `source`, or all if there are fewer.
SampleSourcePtr first_samples(SampleSourcePtr source, int64_t n);
/// A column to keep: its index in the source, and its new name.
struct KeptColumn {
  size_t index = 0;
  std::string name;
};
/// Returns `source` with only the columns `kept`, renamed.
SampleSourcePtr select_columns(SampleSourcePtr source, std::vector<KeptColumn> kept);
/// Returns the number of samples of `a` that have the same name() and row() as a sample of `b`.
int64_t common_rows(const SampleSource& a, const SampleSource& b);

}  // namespace fluid
