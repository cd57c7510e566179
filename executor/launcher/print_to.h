#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace fluid {

/// Like fmt::print(), but a failed write does not throw. A failed write sets the stream's error
/// flag, and main() then returns exit code 1. All output to stderr, and the output of `fluidrun
/// train` to stdout, uses this function.
template <class... T>
void print_to(std::FILE* stream, fmt::format_string<T...> format, T&&... arguments) {
  const std::string text = fmt::format(format, std::forward<T>(arguments)...);
  std::fwrite(text.data(), 1, text.size(), stream);
}

/// Flushes stdout. Records the errno of the first failure for stdout_error(), because stdio keeps
/// only an error flag.
void flush_stdout();

/// Flushes stdout. Returns the errno of the first failed write to stdout; 0 if all writes
/// succeeded.
int stdout_error();

}  // namespace fluid
