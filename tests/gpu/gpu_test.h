#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "executor/gpu_driver/backend.h"
#include "tests/support/full_run.h"

namespace fluid {

/// Tests of the first GPU that the executor finds. Where there is none they are skipped, and ctest
/// gives them a library by which the host stands in for one: it interprets, so that less is
/// computed there.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (gpu_backend().devices > 0) return;
    ASSERT_EQ(std::getenv("FLUID_GPU_LIBRARY"), nullptr) << gpu_backend().unavailable_reason;
    GTEST_SKIP() << "no GPU: " << gpu_backend().unavailable_reason;
  }

  static bool is_stand_in() {
    return std::string_view(describe_gpu(gpu_backend(), 0).name).starts_with("a host");
  }
  /// Whether a normal run uses the stand-in, on which some tests take long.
  static bool is_short_run() { return is_stand_in() && !testing::is_full_run(); }

  /// `all` on a GPU.
  template <class T>
  static T scaled(T all, T on_stand_in) {
    return is_stand_in() ? on_stand_in : all;
  }
};

}  // namespace fluid
