#pragma once

#include <string>
#include <vector>

namespace fluid {

/// Statistics of compiling the steps of a session.
struct CompileReport {
  double passes_ms = 0;
  double compile_ms = 0;
  int kernels = 0;  ///< compiled by LLVM
  int from_cache = 0;
  /// One line per op that a library could not compute, with the reason.
  std::vector<std::string> of_libraries = {};
};

}  // namespace fluid
