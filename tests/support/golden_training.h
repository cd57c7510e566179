#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "tests/support/golden.h"

namespace fluid::testing {

/// The batch of step `step`, from 0, of the golden regressions: x [samples, features] and
/// y [samples, units], f64.
inline Batch golden_batch(uint64_t step, int64_t samples, int64_t features, int64_t units) {
  return {samples,
          {{"x", golden_tensor(100 + step, {samples, features})},
           {"y", golden_tensor(200 + step, {samples, units})}},
          0};
}

/// Sets the parameters `names` to the start values of the golden regressions, in their order.
inline void set_golden_start(Executor& exe, const std::vector<std::string>& names) {
  for (uint64_t k = 0; k < names.size(); ++k) {
    exe.set_parameter(names[k], golden_tensor(k, exe.parameter(names[k]).shape()));
  }
}

/// The elements of the parameters `names`, one after the other, are the numbers of `expected`, to
/// 1e-9, relative where they are above 1.
inline void expect_golden_parameters(Executor& exe, const std::vector<std::string>& names,
                                     const nlohmann::json& expected) {
  size_t at = 0;
  for (const std::string& name : names) {
    const Tensor found = exe.parameter(name);
    for (int64_t i = 0; i < found.numel(); ++i) {
      const double e = expected.at(at++).get<double>();
      ASSERT_NEAR(found.at(i), e, 1e-9 * std::max(1.0, std::abs(e))) << name << ", element " << i;
    }
  }
  EXPECT_EQ(at, expected.size());
}

/// Runs 30 steps of 6 samples of `features` features and 2 units. After step n, the parameters
/// `names` are the numbers of golden["n"], if there are any.
inline void expect_golden_steps(Executor& exe, const std::vector<std::string>& names,
                                const nlohmann::json& golden, int64_t features = 3) {
  size_t compared = 0;
  for (uint64_t step = 0; step < 30; ++step) {
    exe.run(golden_batch(step, 6, features, 2));
    const std::string number = std::to_string(step + 1);
    if (!golden.contains(number)) continue;
    SCOPED_TRACE("step " + number);
    expect_golden_parameters(exe, names, golden.at(number));
    ++compared;
  }
  EXPECT_EQ(compared, golden.size());
}

}  // namespace fluid::testing
