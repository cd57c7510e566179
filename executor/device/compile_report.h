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
  int timed_ops = 0;     ///< number of ops whose kernels were timed (CpuOptions::tune)
  double timing_ms = 0;  ///< time that timing them took; a part of passes_ms
  /// One line, with the reason, per op that no library could compute.
  std::vector<std::string> library_rejections = {};
};

}  // namespace fluid
