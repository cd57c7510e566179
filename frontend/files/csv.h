#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/files/text_record.h"

namespace fluid {

/// Parses CSV text record by record (RFC 4180). A field in double quotes may hold commas, line
/// breaks and double quotes. A double quote in such a field is written twice. Lines end with LF or
/// CRLF. As extensions, the parser skips a byte order mark and empty lines, and ignores spaces and
/// tabs around a field.
class CsvParser {
 public:
  /// `text` and `source_name` must outlive the parser. Error messages refer to the text as
  /// `source_name`. Throws UserError for UTF-16 text.
  CsvParser(std::string_view text, std::string_view source_name);
  /// Parses nothing until restart() is called.
  CsvParser() = default;
  CsvParser(const CsvParser&) = delete;

  /// Parses `record`, a part of the text `source_name`. Both must outlive its use.
  void restart(const TextRecord& record, std::string_view source_name);
  /// Reads the next record into fields(). Returns false at the end of the text. Throws UserError,
  /// naming the line, for an unterminated quoted field or for text after a closing quote.
  bool next();
  /// The fields of the current record; valid until the next call of next() or restart().
  const std::vector<std::string_view>& fields() const { return fields_; }
  /// Returns the 1-based first line of the current record.
  int64_t line() const { return line_in_source(record_line_); }
  std::string location() const;  ///< "<source_name>:<line>" of the current record

 private:
  int64_t line_in_source(int64_t line) const { return record_.line() + line - 1; }
  [[noreturn]] void fail(int64_t line, const std::string& message) const;
  bool at_end() const { return at_ >= record_.text.size(); }
  bool at_line_end() const;
  void skip_blanks();
  void skip_empty_lines();
  std::string_view parse_field();
  std::string_view parse_quoted_field();

  TextRecord record_;  ///< gives the line where text_ starts
  std::string_view text_;
  std::string_view source_name_;
  size_t at_ = 0;
  int64_t line_ = 1, record_line_ = 1;  ///< counted from the start of text_
  std::vector<std::string_view> fields_;
  std::deque<std::string> unescaped_;  ///< storage of the fields that contain escaped quotes
};

/// The records of CSV text, after a byte order mark. RecordSyntax::begin() throws UserError for
/// UTF-16 text.
const RecordSyntax& csv_record_syntax();

/// Formats `text` as a CSV field, in quotes if necessary.
std::string quote_csv_field(std::string_view text);

}  // namespace fluid
