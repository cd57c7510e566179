#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/tensor.h"

namespace fluid::testing {

/// Each number of `found` is within `tolerance` of that of `expected`.
inline void expect_all_within(const std::vector<double>& found, const std::vector<double>& expected,
                              double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], tolerance) << i;
}

/// Each element of `found` is within `tolerance` of that of `expected`. `what`: the name of the
/// tensor.
inline void expect_golden(const Tensor& found, const std::vector<double>& expected,
                          const std::string& what, double tolerance = 1e-9) {
  SCOPED_TRACE(what);
  std::vector<double> elements;
  for (int64_t i = 0; i < found.numel(); ++i) elements.push_back(found.at(i));
  expect_all_within(elements, expected, tolerance);
}

}  // namespace fluid::testing
