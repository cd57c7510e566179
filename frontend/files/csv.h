#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fluid {

/// Parses CSV text record by record (RFC 4180). A field in double quotes may hold commas, line
/// breaks and double quotes. A double quote in such a field is written twice. Lines end with LF or
/// CRLF. As extensions, the parser skips a byte order mark and empty lines, and ignores spaces and
/// tabs around a field.
class CsvParser {
 public:
  /// `text` must outlive the parser. Error messages refer to the text as `source_name`. Throws
  /// UserError for UTF-16 text.
  CsvParser(std::string_view text, std::string source_name);
  /// Appends the next part of the source text to `text`. At the end of the source text, returns
  /// false and leaves `text` unchanged.
  using ReadMore = std::function<bool(std::string& text)>;
  /// Parses a text that `read_more` supplies in parts. Throws like the constructor above. next()
  /// also throws UserError for a record of more than kMaxRecordBytes.
  CsvParser(ReadMore read_more, std::string source_name);
  CsvParser(const CsvParser&) = delete;

  /// Reads the next record into fields(). Returns false at the end of the text. Throws UserError,
  /// naming the line, for an unterminated quoted field or for text after a closing quote.
  bool next();
  /// The fields of the current record; valid until the next call of next().
  const std::vector<std::string_view>& fields() const { return fields_; }
  int64_t line() const { return record_line_; }  ///< 1-based first line of the current record
  std::string location() const;                  ///< "<source_name>:<line>" of the current record

 private:
  void skip_byte_order_mark();
  bool read_more(size_t record_at, int64_t record_line);
  bool parse_record();
  [[noreturn]] void fail(int64_t line, const std::string& message) const;
  bool at_end() const { return at_ >= text_.size(); }
  bool at_line_end() const;
  void skip_blanks();
  void skip_empty_lines();
  std::string_view parse_field();
  std::string_view parse_quoted_field();

  ReadMore read_more_;  ///< null: text_ is the whole text
  std::string buffer_;  ///< if read_more_ is set: the loaded part of the text, which text_ views
  std::string_view text_;
  std::string source_name_;
  size_t at_ = 0;
  int64_t line_ = 1, record_line_ = 1;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unescaped_;  ///< storage of the fields that contain escaped quotes
};

/// Formats `text` as a CSV field, in quotes if necessary.
std::string quote_csv_field(std::string_view text);

}  // namespace fluid
