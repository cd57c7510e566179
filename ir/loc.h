#pragma once

#include <string>

namespace fluid {

/// A location in the user's source. Layer and op functions have the default argument `Loc loc =
/// Loc::here()`, which captures the caller's line for error messages and profiles.
struct Loc {
  std::string file;  ///< path of the source as given to the compiler; empty if unknown
  int line = 0;

  static Loc here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  bool is_known() const { return !file.empty(); }
  /// Returns "mnist.cpp:13" (last component of the path), or "" if the location is unknown.
  std::string str() const;
  bool operator==(const Loc&) const = default;
};

}  // namespace fluid
