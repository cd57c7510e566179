#pragma once

#include <string>

namespace fluid {

/// A place in the user's source. Builders take `Loc loc = Loc::here()` as their last argument, so
/// every op, error and profile row can name the line that asked for it.
struct Loc {
  std::string file;  ///< as the compiler spelled it; empty when unknown
  int line = 0;

  static Loc here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  bool known() const { return !file.empty(); }
  /// "mnist.cpp:13" (the file's last component), or "" when unknown.
  std::string str() const;
  bool operator==(const Loc&) const = default;
};

}  // namespace fluid
