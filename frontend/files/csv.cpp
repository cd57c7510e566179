#include "frontend/files/csv.h"

#include <algorithm>

#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// Returns the size in bytes of the byte order mark at the start of `text`; 0: none.
size_t byte_order_mark(std::string_view text, std::string_view source_name) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    throw UserError(std::string(source_name) + " is UTF-16: save it as UTF-8");
  }
  return text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
}

/// Returns the offset after the quoted field whose opening quote is at `begin`; npos if the field
/// may continue after `text`.
size_t end_of_quoted_field(std::string_view text, size_t begin) {
  for (;;) {
    const size_t quote = text.find('"', begin + 1);
    if (quote == std::string_view::npos || quote + 1 == text.size()) return std::string_view::npos;
    if (text[quote + 1] != '"') return quote + 1;
    begin = quote + 1;
  }
}

size_t end_of_csv_record(std::string_view text, size_t begin) {
  const size_t line_end = text.find('\n', begin);
  const bool has_quote = text.substr(begin, line_end - begin).find('"') != std::string_view::npos;
  if (!has_quote) return line_end == std::string_view::npos ? line_end : line_end + 1;
  for (size_t at = begin;;) {
    while (at < text.size() && is_blank(text[at])) ++at;
    if (at < text.size() && text[at] == '"') at = end_of_quoted_field(text, at);
    while (at < text.size() && text[at] != ',' && text[at] != '\n') ++at;
    if (at >= text.size()) return std::string_view::npos;
    if (text[at++] == '\n') return at;
  }
}

bool is_empty_line(std::string_view record) {
  return record == "\n" || record == "\r\n" || record == "\r";
}

}  // namespace

const RecordSyntax& csv_record_syntax() {
  static constexpr RecordSyntax syntax = {byte_order_mark, end_of_csv_record, is_empty_line,
                                          ": does a quoted field not end?"};
  return syntax;
}

CsvParser::CsvParser(std::string_view text, std::string_view source_name) {
  restart({.text = text.substr(byte_order_mark(text, source_name))}, source_name);
}

void CsvParser::restart(const TextRecord& record, std::string_view source_name) {
  record_ = record;
  text_ = record.text;
  source_name_ = source_name;
  at_ = 0;
  line_ = record_line_ = 1;
}

std::string CsvParser::location() const { return ir::file_and_line(source_name_, line()); }

void CsvParser::fail(int64_t line, const std::string& message) const {
  throw UserError(ir::file_and_line(source_name_, line_in_source(line)) + ": " + message);
}

bool CsvParser::at_line_end() const {
  return at_end() || text_[at_] == '\n' || text_.substr(at_, 2) == "\r\n" ||
         text_.substr(at_) == "\r";
}

void CsvParser::skip_blanks() {
  while (!at_end() && is_blank(text_[at_])) ++at_;
}

void CsvParser::skip_empty_lines() {
  while (!at_end() && at_line_end()) {
    if (text_[at_++] == '\n') ++line_;
  }
}

bool CsvParser::next() {
  skip_empty_lines();
  fields_.clear();
  unescaped_.clear();
  record_line_ = line_;
  if (at_end()) return false;
  for (;;) {
    fields_.push_back(parse_field());
    if (at_end()) return true;
    if (text_[at_++] == ',') continue;
    ++line_;
    return true;
  }
}

std::string_view CsvParser::parse_field() {
  skip_blanks();
  if (!at_end() && text_[at_] == '"') return parse_quoted_field();
  size_t end = at_;  // find_first_of() would call memchr() for each character
  while (end < text_.size() && text_[end] != ',' && text_[end] != '\n') ++end;
  std::string_view raw = text_.substr(at_, end - at_);
  at_ = end;
  if ((at_end() || text_[at_] == '\n') && raw.ends_with('\r')) raw.remove_suffix(1);
  while (!raw.empty() && is_blank(raw.back())) raw.remove_suffix(1);
  return raw;
}

std::string_view CsvParser::parse_quoted_field() {
  const int64_t opened = line_;
  std::string* unescaped = nullptr;
  size_t begin = ++at_;
  for (;;) {
    const size_t quote = text_.find('"', at_);
    if (quote == std::string_view::npos) {
      at_ = text_.size();
      fail(opened, "a quoted field does not end");
    }
    line_ += std::count(text_.begin() + static_cast<ptrdiff_t>(at_),
                        text_.begin() + static_cast<ptrdiff_t>(quote), '\n');
    const bool escaped = text_.substr(quote + 1).starts_with('"');
    if (unescaped == nullptr && escaped) unescaped = &unescaped_.emplace_back();
    if (unescaped != nullptr) *unescaped += text_.substr(begin, quote + (escaped ? 1 : 0) - begin);
    at_ = quote + (escaped ? 2 : 1);
    if (!escaped) {
      const std::string_view whole = text_.substr(begin, quote - begin);
      skip_blanks();
      if (at_line_end() && !at_end() && text_[at_] == '\r') ++at_;
      if (!at_end() && text_[at_] != ',' && text_[at_] != '\n') {
        fail(line_, "text follows a quoted field");
      }
      return unescaped != nullptr ? *unescaped : whole;
    }
    begin = at_;
  }
}

std::string quote_csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

}  // namespace fluid
