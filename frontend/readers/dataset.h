#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "frontend/readers/column_table.h"
#include "ir/tensor.h"

namespace fluid {

/// Treatment of a record that cannot be read, for example a damaged image.
enum class BadRecords {
  stop,  ///< throws the UserError of the record
  skip,  ///< replaces the record by the next sample: for training
  drop,  ///< drops the record from its batch: for evaluation and prediction
};

/// Records that were skipped because they could not be read.
struct SkippedRecords {
  static constexpr size_t kMaxErrors = 20;

  int64_t count = 0;                     ///< number of distinct records
  std::vector<std::string> errors = {};  ///< error messages of the first kMaxErrors records

  void add(std::string error) {
    ++count;
    if (errors.size() < kMaxErrors) errors.push_back(std::move(error));
  }
};

/// A dataset in memory: named columns. The first dimension of every column is the number of
/// samples.
struct Dataset {
  std::vector<std::pair<std::string, Tensor>> columns;
  std::string source = {};         ///< file or data SPEC of the samples
  std::vector<int64_t> rows = {};  ///< index of each sample in `source`; empty: 0, 1, 2...
  int64_t first_line = 0;  ///< line of row 0 in `source` if rows are on consecutive lines; else 0
  /// Line number of each sample. If empty and first_line > 0, sample i is on line
  /// first_line + source_index(i).
  std::vector<int64_t> lines = {};
  /// Column -> class names for its integer labels.
  std::map<std::string, std::vector<std::string>> classes = {};
  ColumnTablePtr table = nullptr;  ///< table that the reader learned or applied; null: none
  SkippedRecords skipped = {};     ///< records of `source` that the reader skipped

  int64_t samples() const;                          ///< number of samples
  const Tensor* find(std::string_view name) const;  ///< returns null if there is no such column
  int64_t bytes() const;  ///< total size in bytes of `columns`, `rows` and `lines`
  int64_t source_index(int64_t sample) const;  ///< index of `sample` in `source`
  /// Returns text that locates a sample: "t.csv:7", or "sample 6 of 'digits'" if `source`
  /// has no lines.
  std::string location(int64_t sample) const;
  /// Returns location() of the first sample whose integer column `name` contains `value`. Returns
  /// "" if there is no such sample.
  std::string find_location(const std::string& name, int64_t value) const;
  /// Returns a copy of the first `n` samples, or of all samples if there are fewer than `n`.
  Dataset first(int64_t n) const;
  /// Returns a copy of the samples at the given indices, in the given order.
  Dataset select(std::span<const int64_t> samples) const;
};

}  // namespace fluid
