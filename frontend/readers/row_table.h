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

/// The distinct texts of a column, in order of first occurrence.
class StringTable {
 public:
  /// Returns the index of `text`. Adds the text if it is new. `line`: line where its row starts.
  int32_t index_of(std::string_view text, int64_t line);
  const std::vector<std::string>& texts() const { return texts_; }
  int64_t first_line(size_t index) const { return lines_.at(index); }

 private:
  std::unordered_map<std::string, int32_t> indices_;
  std::vector<std::string> texts_;
  std::vector<int64_t> lines_;
};

/// Stores the parsed rows of a text file. Each row is a line number (i64) followed by the values.
/// All rows have the same size in bytes. The rows are in memory, or in a temporary file if they
/// exceed `memory_limit` bytes.
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

/// Converts the values of one column in one row. `from`: the stored values, which need not be
/// aligned. `to`: the values in the dtype of the column.
using Conversion = std::function<void(const std::byte* from, std::byte* to)>;
/// Returns a Conversion from an index in a StringTable (i32) to ids[index] (i64).
Conversion id_conversion(std::vector<int64_t> ids);

/// Returns the value at `from`, which need not be aligned.
template <class Value>
Value value_at(const std::byte* from) {
  Value value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// A column of a RowTable.
struct RowTableColumn {
  Column type;
  int64_t offset = 0;                     ///< byte offset of the column in a row
  Conversion convert = nullptr;           ///< null: the rows store values of `type.dtype`
  std::vector<std::string> classes = {};  ///< SampleData::classes()
};

/// Rows from a RowWriter, and the columns stored in them.
struct RowTable {
  std::shared_ptr<const ByteSource> rows;
  int64_t samples = 0;
  int64_t row_bytes = 0;
  std::vector<RowTableColumn> columns = {};
  std::string source = {};  ///< path of the parsed text file
  ColumnTablePtr table = nullptr;
  SkippedRecords skipped = {};

  /// Calls `use` with the address of each row, in order.
  void for_each_row(const std::function<void(const std::byte*)>& use) const;
};

/// Returns a source of the rows of `table`. Loads them into a Dataset if they are in memory.
/// Otherwise reads each sample from the temporary file.
SampleSourcePtr make_source(RowTable table);

}  // namespace fluid
