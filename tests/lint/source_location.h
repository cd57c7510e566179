#pragma once

// Defines the part of libstdc++'s <source_location> that clang 14 lacks, because it has no such
// builtin. scripts/lint includes this file before every file; no build uses it.
#include <source_location>

#ifndef __cpp_lib_source_location
namespace std {

class source_location {
 public:
  static constexpr source_location current(const char* file = __builtin_FILE(),
                                           unsigned line = __builtin_LINE()) {
    return {file, line};
  }
  constexpr const char* file_name() const { return file_; }
  constexpr unsigned line() const { return line_; }

 private:
  constexpr source_location(const char* file, unsigned line) : file_(file), line_(line) {}
  const char* file_;
  unsigned line_;
};

}  // namespace std
#endif
