#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace fluid {

/// Parses comma-separated values record by record (RFC 4180). A field in double quotes may hold
/// commas, line breaks, and "" for a quote. Lines end with LF or CRLF. As extensions, a byte order
/// mark and empty lines are skipped, and spaces and tabs around a field are ignored.
class CsvParser {
 public:
  /// `what` names the text in messages; `text` must outlive the parser. Throws UserError for
  /// UTF-16.
  CsvParser(std::string_view text, std::string what);

  /// Reads the next record into fields(). Returns false at the end. Throws UserError, naming the
  /// line, for an unterminated quoted field or for text after its closing quote.
  bool next();
  const std::vector<std::string_view>& fields() const { return fields_; }  ///< valid until next()
  int64_t line() const { return record_line_; }  ///< first line of the record, counted from 1
  std::string place() const;                     ///< "<what>:<line>"

 private:
  [[noreturn]] void fail(int64_t line, const std::string& message) const;
  bool at_end() const { return at_ >= text_.size(); }
  bool at_line_end() const;
  void skip_blanks();
  void skip_empty_lines();
  std::string_view field();
  std::string_view quoted_field();

  std::string_view text_;
  std::string what_;
  size_t at_ = 0;
  int64_t line_ = 1, record_line_ = 1;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unescaped_;  ///< fields of the record that contained ""
};

/// Returns `text` as a field, quoted if necessary.
std::string csv_field(std::string_view text);

}  // namespace fluid
