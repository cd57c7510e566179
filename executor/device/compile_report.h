#pragma once

#include <string>
#include <vector>

namespace fluid {

/// Statistics of compiling the steps of a session.
struct CompileReport {
  int programs = 0;         ///< number of programs that have been through the passes
  int cached_programs = 0;  ///< number of programs that were read from the cache instead
  double passes_ms = 0;     ///< time of the passes, and of reading programs from the cache
  double compile_ms = 0;
  int kernels = 0;  ///< number of kernels that LLVM compiled
  int cache_hits = 0;
  int timed_ops = 0;     ///< number of ops whose kernels were timed (CpuOptions::tune)
  double timing_ms = 0;  ///< time that timing them took; a part of passes_ms
  /// One line, with the reason, per op that no library could compute.
  std::vector<std::string> library_rejections = {};
};

}  // namespace fluid
