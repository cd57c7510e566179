#pragma once

#include <string>
#include <vector>

namespace fluid {

/// What building the steps took.
struct CompileReport {
  double passes_ms = 0;
  double compile_ms = 0;
  int kernels = 0;  ///< compiled by LLVM
  int from_cache = 0;
  std::vector<std::string> of_libraries = {};  ///< lines: what they could not, and why
};

}  // namespace fluid
