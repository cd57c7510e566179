#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "frontend/files/byte_source.h"

namespace fluid {

/// Maximum size in bytes of a record of a text file, such as a line. Readers buffer a whole record.
inline constexpr int64_t kMaxRecordBytes = int64_t{64} << 20;

/// Reads a file sequentially, in parts.
class SequentialBytes {
 public:
  explicit SequentialBytes(std::shared_ptr<const ByteSource> file) : file_(std::move(file)) {}

  /// Appends the next part to `text`: as many bytes as `text` has, and at least 256 KiB. Returns
  /// false at the end of the file.
  bool read_more(std::string& text);

 private:
  std::shared_ptr<const ByteSource> file_;
  int64_t read_ = 0;
};

/// Reads the lines of a text. A line ends with LF; the LF of the last line is optional.
class LineReader {
 public:
  /// `source_name`: the name of the text in messages.
  LineReader(std::shared_ptr<const ByteSource> file, std::string source_name)
      : file_(std::move(file)), source_name_(std::move(source_name)) {}

  /// Reads the next line, valid until the next call. Returns false at the end of the text. Throws
  /// UserError for a line of more than kMaxRecordBytes.
  bool next(std::string_view& line);
  int64_t number() const { return number_; }  ///< 1-based number of the current line

 private:
  SequentialBytes file_;
  std::string source_name_;
  std::string text_;  ///< buffered part of the file
  size_t at_ = 0;     ///< start of the next line in text_
  int64_t number_ = 0;
};

}  // namespace fluid
