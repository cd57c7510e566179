#include "executor/cuda/gpu_plan.h"

#include <gtest/gtest.h>

namespace fluid::cuda::gpu_plan_test {
namespace {

struct Nothing : FluidGpuPlan {
  using FluidGpuPlan::FluidGpuPlan;
  const char* action() const override { return "computing nothing"; }
  FluidGpuResult enqueue(FluidGpuStream*, const FluidGpuOperands&) override { return fluid_gpu_ok; }
};

void* at(uintptr_t address) { return reinterpret_cast<void*>(address); }

TEST(GpuPlans, AreGivenAddressesThatAreThereAndAligned) {
  Nothing plain(nullptr, false, false);
  FluidGpuOperands f = {.a = at(64), .b = at(128), .result = at(192)};
  EXPECT_EQ(validation_error(plain, f), "");
  plain.workspace = 1;
  EXPECT_EQ(validation_error(plain, f), "an address is missing");
  f.workspace = at(192);
  EXPECT_EQ(validation_error(plain, f), "an address is not aligned");
  f.workspace = at(512);
  EXPECT_EQ(validation_error(plain, f), "");
  const Nothing biased(nullptr, false, true), adding(nullptr, true, false);
  EXPECT_EQ(validation_error(biased, f), "an address is missing");
  f.bias = at(16);
  EXPECT_EQ(validation_error(biased, f), "an address is not aligned");
  f.bias = at(256);
  EXPECT_EQ(validation_error(biased, f), "");
  EXPECT_EQ(validation_error(adding, f), "an address is missing");
  f.addend = f.result;
  EXPECT_EQ(validation_error(adding, f), "");
}

}  // namespace
}  // namespace fluid::cuda::gpu_plan_test
