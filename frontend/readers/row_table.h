#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/files/byte_source.h"
#include "frontend/files/temporary_file.h"
#include "frontend/readers/sample_source.h"

namespace fluid {

/// The distinct texts in a column, numbered in the order of their first rows.
class DistinctTexts {
 public:
  /// Returns the number of `text`, which is in a row that starts at line `line`.
  int32_t number_of(std::string_view text, int64_t line);
  const std::vector<std::string>& texts() const { return texts_; }  ///< by number
  int64_t first_line(size_t number) const { return lines_.at(number); }

 private:
  std::unordered_map<std::string, int32_t> numbers_;
  std::vector<std::string> texts_;
  std::vector<int64_t> lines_;
};

/// Rows of a text file, as a reader parsed them: a line number, then the values, in the same number
/// of bytes for each row. The rows are in memory, or in a temporary file if they exceed
/// `memory_limit` bytes.
class RowWriter {
 public:
  explicit RowWriter(int64_t memory_limit) : bytes_(memory_limit) {}

  void start_row(int64_t line) {
    row_.clear();
    append(line);
  }
  template <class Value>
  void append(const Value& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    row_.insert(row_.end(), bytes.begin(), bytes.end());
  }
  void finish_row() {
    bytes_.append(row_);
    ++rows_;
  }
  int64_t rows() const { return rows_; }
  std::shared_ptr<const ByteSource> release() { return bytes_.release(); }

 private:
  SpillBuffer bytes_;
  std::vector<std::byte> row_;
  int64_t rows_ = 0;
};

/// Converts the values of a column at `from`, in a row, to those that it has at `to`. `from` need
/// not be aligned.
using Conversion = std::function<void(const std::byte* from, std::byte* to)>;
/// Returns the conversion of a number of DistinctTexts to an i64, ids[number].
Conversion id_conversion(std::vector<int64_t> ids);

/// Returns the value at `from`, which need not be aligned.
template <class Value>
Value value_at(const std::byte* from) {
  Value value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// A column of a RowTable.
struct RowColumn {
  Column type;
  int64_t offset = 0;                     ///< byte offset of its values in a row
  Conversion convert = nullptr;           ///< null: the row holds the values as they are
  std::vector<std::string> classes = {};  ///< SampleData::classes()
};

/// Rows that a RowWriter wrote, and the columns that are made of them.
struct RowTable {
  std::shared_ptr<const ByteSource> rows;
  int64_t samples = 0;
  int64_t row_bytes = 0;
  std::vector<RowColumn> columns = {};
  std::string source = {};  ///< file of the rows
  ColumnTablePtr table = nullptr;
  SkippedRecords skipped = {};

  /// Calls `use` for each row, in order.
  void for_each_row(const std::function<void(const std::byte*)>& use) const;
};

/// Returns the samples of `table`: in memory if its rows are.
SampleSourcePtr make_source(RowTable table);

}  // namespace fluid
