#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/function_ref.h"

namespace fluid {

/// A set of rows of data, with access by index: a bitmap, and the number of rows before each block.
/// Takes 1.125 bits for each row of the data.
class RowSet {
 public:
  using size_type = int64_t;

  RowSet() = default;
  /// The rows of [0, rows) for which `contains` returns true. Calls it for each row, in order.
  RowSet(int64_t rows, FunctionRef<bool(int64_t)> contains);
  /// The rows `row`(0), ..., `row`(count - 1) of [0, rows), in any order.
  RowSet(int64_t rows, int64_t count, FunctionRef<int64_t(int64_t)> row);

  /// Adds the next row of the data: to the set, or to the rows that are not in it.
  void append(bool is_in_set);
  /// Returns the rows of the data that are not in the set.
  RowSet complement() const;
  /// Whether the set has `row`. False for a row beyond those of the data.
  bool contains(int64_t row) const {
    return row < rows_ &&
           (words_[static_cast<size_t>(row / kWordRows)] >> row % kWordRows & 1) != 0;
  }

  int64_t size() const { return size_; }  ///< number of rows in the set
  /// Returns the row at position `index`, which is below size(), in ascending order.
  int64_t operator[](int64_t index) const;
  int64_t bytes() const;  ///< memory of the set

 private:
  static constexpr int64_t kWordRows = 64, kBlockWords = 8;

  /// Sets rows_before_ and size_ from words_.
  void count();

  std::vector<uint64_t> words_;
  std::vector<int64_t> rows_before_;  ///< block -> number of rows in the blocks before it
  int64_t rows_ = 0;                  ///< number of rows of the data
  int64_t size_ = 0;
};

/// Returns the rows of [0, rows) that are not in `left_out`, which ascends.
RowSet all_rows_except(int64_t rows, std::span<const int64_t> left_out);

}  // namespace fluid
