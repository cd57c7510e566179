#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace fluid {

/// Reads the whole of `text`, without spaces or a leading '+', into `value`. invalid_argument when
/// it is no number of the kind of T, result_out_of_range when it is one that T cannot hold; `value`
/// then means nothing.
template <class T>
std::errc read_number(std::string_view text, T& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return stop == end ? error : std::errc::invalid_argument;
}

/// The whole of `text` as a number; absent when it is none, or one that T cannot hold.
template <class T>
std::optional<T> number_in(std::string_view text) {
  T value = {};
  if (read_number(text, value) != std::errc()) return std::nullopt;
  return value;
}

}  // namespace fluid
