#pragma once

#include <string>
#include <vector>

namespace fluid {

/// Statistics of compiling the steps of a session.
struct CompileReport {
  double passes_ms = 0;
  double compile_ms = 0;
  int kernels = 0;  ///< number of kernels that LLVM compiled
  int cache_hits = 0;
  /// One line, with the reason, per op that no library could compute.
  std::vector<std::string> library_rejections = {};
};

}  // namespace fluid
