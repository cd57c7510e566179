#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/readers/column_table.h"
#include "frontend/readers/dataset.h"
#include "ir/tensor.h"

namespace fluid {

class BatchTransform;

/// A column of samples. `shape` is the shape of one sample.
struct Column {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape = {};

  int64_t numel() const;                                      ///< number of elements of one sample
  int64_t bytes() const { return numel() * size_of(dtype); }  ///< size in bytes of one sample
  std::string str() const;                                    ///< "image u8[3, 32, 32]"
};

/// Seed of the random choices of an augmentation. The choices for a sample depend only on this seed
/// and on the index of the sample.
struct AugmentationSeed {
  uint64_t seed = 0;
  int64_t epoch = 0;
};

/// The samples of a Reader: their columns and origin. A SampleSource reads samples by index, a
/// SampleStream in order. All functions of this class are thread-safe. Their results do not change
/// after construction.
class SampleData {
 public:
  virtual ~SampleData() = default;

  virtual const std::vector<Column>& columns() const = 0;
  virtual std::string name() const = 0;  ///< file or data SPEC of the samples
  /// Index of `sample` in the original data, before any split or selection.
  virtual int64_t source_index(int64_t sample) const { return sample; }
  /// Returns text that locates a sample: "t.csv:7", "'cats/1.jpg'".
  virtual std::string location(int64_t sample) const;
  /// Returns location() of the first sample whose integer column `column` contains `value`. Returns
  /// "" if no sample does, or if a search would have to read the data from disk.
  virtual std::string find_location(const std::string& column, int64_t value) const;
  /// Class names for the integer labels in column `column`; empty: unknown.
  virtual std::vector<std::string> classes(const std::string& column) const;
  /// The ColumnTable of the columns, learned from this data or from the training data; null: none.
  virtual ColumnTablePtr table() const { return nullptr; }
  /// Records that were skipped when the data was opened.
  virtual SkippedRecords skipped() const { return {}; }
  /// Throws UserError if a checksum of a file is wrong that reading samples does not verify.
  virtual void check_files() const {}
  virtual int64_t resident_bytes() const { return 0; }  ///< bytes of data held in memory
  /// The transform that a Reader applies to whole batches; null: none.
  virtual const BatchTransform* batch_transform() const { return nullptr; }

  const Column* find(std::string_view column) const;  ///< null if there is no such column
  /// Returns a Batch of one sample, whose tensors have types but no memory.
  Batch sample_types() const;
};

/// Allocates buffers for `samples` samples: one tensor [samples, ...] per column.
std::vector<Tensor> sample_buffers(const std::vector<Column>& columns, int64_t samples);
/// Returns the addresses of sample `sample` in `buffers`, which sample_buffers() returned.
std::vector<std::byte*> sample_addresses(std::vector<Tensor>& buffers, int64_t sample);

/// A column that select_columns() keeps: its index in the source, and its new name.
struct ColumnSelection {
  size_t index = 0;
  std::string name;
};

}  // namespace fluid
