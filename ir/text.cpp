#include "ir/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace fluid::ir {
namespace {

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool starts_word(char c) { return is_lower(c) || is_upper(c) || c == '_'; }

void append_printable(std::string& out, char c) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (c == '\n') {
    out += "\\n";
  } else if (c == '\t') {
    out += "\\t";
  } else if (c == '\r') {
    out += "\\r";
  } else if (byte < 0x20 || byte == 0x7f) {
    out += "\\x";
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  } else {
    out += c;
  }
}

char lowered(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_identifier_character(char c) { return starts_word(c) || is_digit(c) || c == '.'; }

bool is_identifier(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameLength && starts_word(name.front()) &&
         std::ranges::all_of(name, is_identifier_character);
}

bool is_op_name(std::string_view name) {
  return is_identifier(name) && name != "output" && name != "graph";
}

std::vector<std::string> split_at_commas(std::string_view s) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= s.size();) {
    const size_t end = std::min(s.find(',', begin), s.size());
    parts.emplace_back(s.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string lowercase(std::string_view s) {
  std::string lowered(s);
  for (char& c : lowered) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lowered;
}

std::string escape_control_characters(std::string_view s) {
  std::string out;
  for (const char c : s) append_printable(out, c);
  return out;
}

std::string file_and_line(std::string_view file, int64_t line) {
  return std::string(file) + ":" + std::to_string(line);
}

std::string quote(std::string_view s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    append_printable(out, c);
  }
  return out + '"';
}

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  std::array<char, 32> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  std::string text(buffer.data(), end);
  if (text.find_first_of(".einf") == std::string::npos) text += ".0";
  return text;
}

std::string graph_reference(std::string_view name) {
  return "@" + (is_identifier(name) ? std::string(name) : quote(name));
}

std::optional<Layout> parse_layout(std::string_view text, int64_t rank) {
  const std::string_view letters = layout_letters(rank);
  const auto axis_of = [&](char c) {
    const size_t axis = letters.find(lowered(c));
    return axis < static_cast<size_t>(rank) ? static_cast<int>(axis) : -1;
  };
  Layout layout;
  size_t i = 0;
  for (; i < text.size() && !is_digit(text[i]); ++i) {
    const int axis = axis_of(text[i]);
    if (axis < 0 || std::ranges::count(layout.order, axis) > 0) return std::nullopt;
    layout.order.push_back(axis);
  }
  while (i < text.size()) {
    int64_t size = 0;
    const char* const end = text.data() + text.size();
    const auto [after, error] = std::from_chars(text.data() + i, end, size);
    if (error != std::errc() || after == end || size < 1) return std::nullopt;
    const int axis = axis_of(*after);
    if (axis < 0) return std::nullopt;
    layout.blocks.push_back({axis, size});
    i = static_cast<size_t>(after - text.data()) + 1;
  }
  // Rejects upper-case letters that do not match the blocks, leading zeros in block sizes, and
  // missing axes.
  if (static_cast<int64_t>(layout.order.size()) != rank || layout.str() != text)
    return std::nullopt;
  return layout;
}

}  // namespace fluid::ir
