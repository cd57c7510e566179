#include "frontend/readers/row_set.h"

#include <algorithm>
#include <bit>

namespace fluid {

RowSet::RowSet(int64_t rows, FunctionRef<bool(int64_t)> contains) {
  for (int64_t row = 0; row < rows; ++row) append(contains(row));
}

RowSet::RowSet(int64_t rows, int64_t count, FunctionRef<int64_t(int64_t)> row)
    : words_(static_cast<size_t>((rows + kWordRows - 1) / kWordRows)), rows_(rows) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t added = row(i);
    words_[static_cast<size_t>(added / kWordRows)] |= uint64_t{1} << added % kWordRows;
  }
  this->count();
}

void RowSet::append(bool is_in_set) {
  if (rows_ % (kWordRows * kBlockWords) == 0) rows_before_.push_back(size_);
  if (rows_ % kWordRows == 0) words_.push_back(0);
  words_.back() |= uint64_t{is_in_set} << rows_ % kWordRows;
  size_ += is_in_set ? 1 : 0;
  ++rows_;
}

RowSet RowSet::complement() const {
  RowSet others;
  others.rows_ = rows_;
  for (const uint64_t word : words_) others.words_.push_back(~word);
  if (rows_ % kWordRows != 0) others.words_.back() &= (uint64_t{1} << rows_ % kWordRows) - 1;
  others.count();
  return others;
}

void RowSet::count() {
  for (size_t word = 0; word < words_.size(); ++word) {
    if (word % kBlockWords == 0) rows_before_.push_back(size_);
    size_ += std::popcount(words_[word]);
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
