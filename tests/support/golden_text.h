#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace fluid::testing {

/// Compares `text` with the file tests/golden/`name`. With FLUID_UPDATE_GOLDENS set in the
/// environment the file is written instead: read the change before committing it.
inline void expect_golden_text(const std::string& name, const std::string& text) {
  const std::string path = std::string(FLUID_SOURCE_DIR) + "/tests/golden/" + name;
  if (std::getenv("FLUID_UPDATE_GOLDENS") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream in(path);
  const std::string expected{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(expected, text) << "of " << name;
}

}  // namespace fluid::testing
