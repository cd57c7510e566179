#pragma once

#include <gtest/gtest.h>

#include <vector>

namespace fluid::testing {

/// Each number of `found` is within `tolerance` of that of `expected`.
inline void expect_all_within(const std::vector<double>& found, const std::vector<double>& expected,
                              double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], tolerance) << i;
}

}  // namespace fluid::testing
