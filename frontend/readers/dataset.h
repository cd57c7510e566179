#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/tensor.h"

namespace fluid {

/// Samples in memory: named columns. The first dimension of every column is the number of samples.
struct Dataset {
  std::vector<std::pair<std::string, Tensor>> columns;
  std::string source = {};          ///< the file or SPEC, for messages
  std::vector<int64_t> rows = {};   ///< index of each sample in the source; empty: 0, 1, 2...
  int64_t first_line = 0;           ///< line of row 0 in a text file with one line per row
  std::vector<int64_t> lines = {};  ///< line of each sample, if rows are not one line each

  int64_t samples() const;                          ///< 0 for a first column of rank 0
  const Tensor* find(std::string_view name) const;  ///< null when absent
  int64_t bytes() const;                            ///< size of all columns
  int64_t row(int64_t sample) const;                ///< index of a sample in the source
  /// Returns "line 7 of 't.csv'", or "sample 6 of 'digits'" for a source without lines.
  std::string place(int64_t sample) const;
  /// Returns the place of the first sample whose integer column `name` holds `value`, or "".
  std::string place_of(const std::string& name, int64_t value) const;
  /// Returns how many samples are the same row of the same source as a sample of `other`.
  int64_t common_rows(const Dataset& other) const;
  /// Copies the first `n` samples, or all if there are fewer.
  Dataset first(int64_t n) const;
  /// Copies the samples at the given indices, in the given order.
  Dataset select(std::span<const int64_t> samples) const;
};

}  // namespace fluid
