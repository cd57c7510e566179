#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/tensor.h"

namespace fluid {

/// Samples in memory: named columns whose first dimension counts the samples, the same in all.
struct Dataset {
  std::vector<std::pair<std::string, Tensor>> columns;
  std::string source = {};          ///< the file, or the SPEC, that messages name
  std::vector<int64_t> rows = {};   ///< each sample's index in the source; empty: 0, 1, 2...
  int64_t first_line = 0;           ///< of a text file, the line of its row 0, one line a row
  std::vector<int64_t> lines = {};  ///< the line of each sample, where rows are not one line each

  int64_t samples() const;                          ///< 0 for a first column of rank 0
  const Tensor* find(std::string_view name) const;  ///< null when absent
  int64_t bytes() const;                            ///< of all it holds
  int64_t row(int64_t sample) const;                ///< its index in the source
  /// "line 7 of 't.csv'", or "sample 6 of 'digits'" where the source has no lines.
  std::string place(int64_t sample) const;
  /// The place of the first sample whose integer column `name` holds `value`; "" when there is
  /// none.
  std::string place_of(const std::string& name, int64_t value) const;
  /// How many samples are rows of the same source as samples of `other`.
  int64_t rows_shared_with(const Dataset& other) const;
  /// A copy of the first `n` samples; all when there are fewer.
  Dataset first(int64_t n) const;
  /// A copy of the samples at these indices, in their order.
  Dataset select(std::span<const int64_t> samples) const;
};

}  // namespace fluid
