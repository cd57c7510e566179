#pragma once

#include <string>

namespace fluid {

/// A location in the user's source. Builders take `Loc loc = Loc::here()` as their last argument,
/// so that ops, errors and profile rows name the user's line.
struct Loc {
  std::string file;  ///< as given to the compiler; empty when unknown
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
