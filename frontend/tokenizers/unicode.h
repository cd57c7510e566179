#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fluid {

/// Classes of code points: the Unicode categories L and N, the property White_Space, and all
/// others.
enum class CharClass { letter, number, space, other };

CharClass class_of(char32_t code_point);

/// Decodes the code point at byte `at` of `text`, and advances `at` past it. If the bytes are not
/// UTF-8, returns false and does not change `at`.
bool next_code_point(std::string_view text, size_t& at, char32_t& code_point);

/// Encodes a code point below 0x800 as UTF-8.
std::string utf8_of(char32_t code_point);

}  // namespace fluid
