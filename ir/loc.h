#pragma once

#include <string>

namespace fluid {

/// A location in the user's source. Builders take `Loc loc = Loc::here()` as their last argument,
/// so ops, errors and profile rows name the line in the user's source.
struct Loc {
  std::string file;  ///< path of the source as given to the compiler; empty if unknown
  int line = 0;

  static Loc here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  bool known() const { return !file.empty(); }
  /// Returns "mnist.cpp:13" (last component of the path), or "" when unknown.
  std::string str() const;
  bool operator==(const Loc&) const = default;
};

}  // namespace fluid
