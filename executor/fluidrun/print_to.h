#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace fluid {

/// fmt::print() without its exception: a stream that is closed or full loses the text and keeps its
/// error flag, which main() turns into exit code 1. All text to stderr goes through here, and what
/// training prints to stdout.
template <class... T>
void print_to(std::FILE* stream, fmt::format_string<T...> format, T&&... arguments) {
  const std::string text = fmt::format(format, std::forward<T>(arguments)...);
  std::fwrite(text.data(), 1, text.size(), stream);
}

/// Flushes what was printed. A failure is kept for output_error(): stdio forgets its reason.
void flush_output();

/// Why something printed until now has not arrived, as an errno; 0 when all has. Flushes.
int output_error();

}  // namespace fluid
