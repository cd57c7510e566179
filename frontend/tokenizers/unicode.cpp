#include "frontend/tokenizers/unicode.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace fluid {
namespace {

/// A range of consecutive code points.
struct CodePoints {
  char32_t first, last;
};

#include "frontend/tokenizers/unicode_ranges.inc"

constexpr CodePoints kSpaces[] = {
    {0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
    {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};

bool contains(std::span<const CodePoints> ranges, char32_t code_point) {
  const auto after = std::ranges::upper_bound(ranges, code_point, {}, &CodePoints::first);
  return after != ranges.begin() && code_point <= std::prev(after)->last;
}

}  // namespace

CharClass class_of(char32_t code_point) {
  if (contains(kLetters, code_point)) return CharClass::letter;
  if (contains(kSpaces, code_point)) return CharClass::space;
  if (contains(kNumbers, code_point)) return CharClass::number;
  return CharClass::other;
}

bool next_code_point(std::string_view text, size_t& at, char32_t& code_point) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (length == 0 || lead > 0xF4 || at + length > text.size()) return false;
  char32_t value = length == 1 ? lead : lead & (0x7Fu >> length);
  for (size_t i = at + 1; i < at + length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return false;
    value = value << 6 | (byte(i) & 0x3Fu);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  if (value < kLeast[length] || surrogate || value > 0x10FFFF) return false;
  code_point = value;
  at += length;
  return true;
}

std::string utf8_of(char32_t code_point) {
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  return {static_cast<char>(0xC0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3F))};
}

}  // namespace fluid
