#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace fluid {

/// Parses all of `text` into `value`; whitespace and a leading '+' are errors. Returns
/// invalid_argument if `text` is not a number of T's kind, and result_out_of_range if T cannot
/// represent the number. On error, `value` is unspecified.
template <class T>
std::errc read_number(std::string_view text, T& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return stop == end ? error : std::errc::invalid_argument;
}

/// Parses all of `text` as a T. Returns nullopt when `text` is not a number or T cannot represent
/// it.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value = {};
  if (read_number(text, value) != std::errc()) return std::nullopt;
  return value;
}

}  // namespace fluid
