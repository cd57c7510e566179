#include "frontend/readers/row_set.h"

#include <algorithm>
#include <bit>

namespace fluid {

RowSet::RowSet(int64_t rows, FunctionRef<bool(int64_t)> contains)
    : words_(static_cast<size_t>((rows + kWordRows - 1) / kWordRows)) {
  for (int64_t row = 0; row < rows; ++row) {
    if (row % (kWordRows * kBlockWords) == 0) rows_before_.push_back(size_);
    if (!contains(row)) continue;
    words_[static_cast<size_t>(row / kWordRows)] |= uint64_t{1} << (row % kWordRows);
    ++size_;
  }
}

int64_t RowSet::operator[](int64_t index) const {
  const auto after = std::ranges::upper_bound(rows_before_, index);
  const int64_t block = after - rows_before_.begin() - 1;
  int64_t left = index - rows_before_[static_cast<size_t>(block)];
  int64_t word = block * kBlockWords;
  for (int count = 0; left >= (count = std::popcount(words_[static_cast<size_t>(word)])); ++word) {
    left -= count;
  }
  uint64_t bits = words_[static_cast<size_t>(word)];
  for (; left > 0; --left) bits &= bits - 1;  // clears the lowest set bit
  return word * kWordRows + std::countr_zero(bits);
}

RowSet all_rows_except(int64_t rows, std::span<const int64_t> left_out) {
  auto next = left_out.begin();
  return {rows, [&](int64_t row) {
            const bool is_left_out = next != left_out.end() && *next == row;
            if (is_left_out) ++next;
            return !is_left_out;
          }};
}

int64_t RowSet::bytes() const {
  return std::ssize(words_) * static_cast<int64_t>(sizeof words_[0]) +
         std::ssize(rows_before_) * static_cast<int64_t>(sizeof rows_before_[0]);
}

}  // namespace fluid
