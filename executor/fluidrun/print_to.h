#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace fluid {

/// fmt::print() without its exception: a closed or full stream loses the text and keeps its error
/// flag, which main() turns into exit code 1. All text to stderr, and the text of training to
/// stdout, goes through here.
template <class... T>
void print_to(std::FILE* stream, fmt::format_string<T...> format, T&&... arguments) {
  const std::string text = fmt::format(format, std::forward<T>(arguments)...);
  std::fwrite(text.data(), 1, text.size(), stream);
}

/// Flushes stdout, and keeps the errno of a failure for output_error(): stdio drops it.
void flush_output();

/// Flushes stdout; returns the errno of the first failed write, 0 without one.
int output_error();

}  // namespace fluid
