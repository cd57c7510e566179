#include "frontend/readers/plain_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace fluid {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_plain(char c) { return c >= ' ' && c != '"' && c != '\\' && c != '\x7f'; }

/// Parses a text. The functions return false where it is not plain.
class PlainJsonParser {
 public:
  explicit PlainJsonParser(std::string_view text) : text_(text) {}

  bool parse(std::vector<PlainJsonEntry>& entries) {
    if (!accept('{')) return false;
    if (!accept('}')) {
      do {
        PlainJsonEntry entry;
        if (!string(entry.key) || !accept(':') || !value(entry.value)) return false;
        if (std::ranges::find(entries, entry.key, &PlainJsonEntry::key) != entries.end()) {
          return false;
        }
        entries.push_back(std::move(entry));
      } while (accept(','));
      if (!accept('}')) return false;
    }
    skip_space();
    return at_ == text_.size();
  }

 private:
  void skip_space() {
    const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool accept(char c) {
    skip_space();
    if (next() != c) return false;
    ++at_;
    return true;
  }
  bool accept_word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  bool string(std::string_view& content) {
    if (!accept('"')) return false;
    const size_t begin = at_;
    while (is_plain(next())) ++at_;
    content = text_.substr(begin, at_ - begin);
    return next() == '"' && ++at_ > 0;
  }

  bool value(std::optional<LineValue>& value) {
    skip_space();
    if (next() == 'n') return accept_word("null");
    value.emplace();
    if (next() != '"') return elements(0, *value);
    std::string_view content;
    if (!string(content)) return false;
    value->is_text = true;
    value->text = content;
    return true;
  }

  /// Parses an array at nesting `depth`, or a number, bool or null.
  bool elements(size_t depth, LineValue& value) {
    skip_space();
    if (next() != '[') return depth == value.shape.size() && scalar(value);
    ++at_;
    const bool is_first = value.shape.size() == depth && value.numbers.empty();
    if (is_first) value.shape.push_back(0);
    if (depth >= kMaxJsonDepth || depth >= value.shape.size()) return false;
    int64_t length = 0;
    do {
      if (!elements(depth + 1, value)) return false;
      ++length;
    } while (accept(','));
    if (is_first) value.shape[depth] = length;
    return accept(']') && value.shape[depth] == length;
  }

  bool scalar(LineValue& value) {
    switch (next()) {
      case 't':
        value.numbers.push_back(1);
        return accept_word("true");
      case 'f':
        value.numbers.push_back(0);
        return accept_word("false");
      case 'n':
        value.numbers.push_back(std::numeric_limits<double>::quiet_NaN());
        value.has_missing = true;
        return accept_word("null");
      default:
        return number(value);
    }
  }

  /// Parses a number. JSON allows neither 01 nor .5 nor 1. as std::from_chars() does.
  bool number(LineValue& value) {
    const size_t begin = at_;
    if (next() == '-') ++at_;
    const size_t digits = at_;
    while (is_digit(next())) ++at_;
    const size_t integer_digits = at_ - digits;
    if (integer_digits == 0 || (integer_digits > 1 && text_[digits] == '0')) return false;
    const bool is_float = next() == '.' || next() == 'e' || next() == 'E';
    if (next() == '.' && (at_ + 1 == text_.size() || !is_digit(text_[at_ + 1]))) return false;
    double result = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + begin, text_.data() + text_.size(), result);
    at_ = static_cast<size_t>(end - text_.data());
    const double limit = is_float ? double{std::numeric_limits<float>::max()} : kMaxJsonInteger;
    if (error != std::errc() || std::abs(result) > limit) return false;
    value.is_integer = value.is_integer && !is_float;
    value.numbers.push_back(is_float ? result : result + 0.0);  // the integer -0 is 0
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::optional<std::vector<PlainJsonEntry>> parse_plain_json(std::string_view text) {
  std::vector<PlainJsonEntry> entries;
  if (!PlainJsonParser(text).parse(entries)) return std::nullopt;
  return entries;
}

}  // namespace fluid
