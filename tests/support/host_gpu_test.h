#pragma once

// Shared code of the tests on a host that stands in for a GPU.

#include <gtest/gtest.h>

#include <string>

#include "tests/support/host_gpu.h"

namespace fluid::testing {

/// It is as it is at first, and all that is taken of it comes back.
class HostGpuTest : public ::testing::Test {
 protected:
  void SetUp() override { reset_host_gpu({}); }
  void TearDown() override { EXPECT_EQ(host_gpu_objects(), 0); }
};

/// A pace that tests run at.
struct TestedPace {
  const char* name;
  HostPace pace;
  uint64_t seed = 0;
  HostGpuOptions options() const { return {.pace = pace, .seed = seed}; }
};
inline constexpr TestedPace kEarly{"early", HostPace::early}, kLate{"late", HostPace::late},
    kRandom{"random", HostPace::random};
/// The paces at which work is unfinished when the host goes on. Suites run at kEarly as `Long`.
inline const auto kPaces = ::testing::Values(kLate, kRandom);
inline std::string name_of(const ::testing::TestParamInfo<TestedPace>& info) {
  return info.param.name;
}

/// Runs the tests at each pace.
class HostGpuPaceTest : public HostGpuTest, public ::testing::WithParamInterface<TestedPace> {
 protected:
  void SetUp() override { reset_host_gpu(GetParam().options()); }
};

}  // namespace fluid::testing
