#include "frontend/files/csv.h"

#include <algorithm>

#include "frontend/files/line_reader.h"
#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_blank(char c) { return c == ' ' || c == '\t'; }

}  // namespace

CsvParser::CsvParser(std::string_view text, std::string source_name)
    : text_(text), source_name_(std::move(source_name)) {
  skip_byte_order_mark();
}

CsvParser::CsvParser(ReadMore read_more, std::string source_name)
    : read_more_(std::move(read_more)), source_name_(std::move(source_name)) {
  read_more_(buffer_);
  text_ = buffer_;
  skip_byte_order_mark();
}

void CsvParser::skip_byte_order_mark() {
  if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  if (text_.starts_with("\xff\xfe") || text_.starts_with("\xfe\xff")) {
    throw UserError(source_name_ + " is UTF-16: save it as UTF-8");
  }
}

std::string CsvParser::location() const { return ir::file_and_line(source_name_, record_line_); }

void CsvParser::fail(int64_t line, const std::string& message) const {
  throw UserError(ir::file_and_line(source_name_, line) + ": " + message);
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
  for (;;) {
    const size_t begin = at_;
    const int64_t line = line_;
    // If fewer than two characters follow a record, the record may continue in the next part.
    const auto must_reparse = [&] { return at_ + 2 > text_.size() && read_more(begin, line); };
    try {
      const bool is_record = parse_record();
      if (!must_reparse()) return is_record;
    } catch (const UserError&) {
      if (!must_reparse()) throw;
    }
  }
}

/// Appends the next part of the text to buffer_ and erases the text before `record_at`. Parsing
/// restarts at the record that starts at `record_at`, on line `record_line`. Returns false, and
/// changes nothing, at the end of the text.
bool CsvParser::read_more(size_t record_at, int64_t record_line) {
  const auto record_bytes = static_cast<int64_t>(text_.size() - record_at);
  if (read_more_ == nullptr || !read_more_(buffer_)) return false;
  buffer_.erase(0, record_at);
  text_ = buffer_;
  at_ = 0;
  line_ = record_line;
  if (record_bytes <= kMaxRecordBytes) return true;
  fail(record_line, "the record has more than " + std::to_string(kMaxRecordBytes >> 20) +
                        " MiB: does a quoted field not end?");
}

bool CsvParser::parse_record() {
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
