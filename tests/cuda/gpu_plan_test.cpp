#include "executor/cuda/gpu_plan.h"

#include <gtest/gtest.h>

namespace fluid::cuda::gpu_plan_test {
namespace {

struct Nothing : FluidGpuPlan {
  using FluidGpuPlan::FluidGpuPlan;
  const char* doing() const override { return "computing nothing"; }
  FluidGpuResult queue(FluidGpuStream*, const FluidGpuOperands&) override { return fluid_gpu_ok; }
};

void* at(uintptr_t address) { return reinterpret_cast<void*>(address); }

TEST(GpuPlans, AreGivenAddressesThatAreThereAndAligned) {
  Nothing plain(nullptr, false, false);
  FluidGpuOperands f = {.a = at(64), .b = at(128), .result = at(192)};
  EXPECT_EQ(fault_of(plain, f), "");
  plain.workspace = 1;
  EXPECT_EQ(fault_of(plain, f), "an address is missing");
  f.workspace = at(192);
  EXPECT_EQ(fault_of(plain, f), "an address is not aligned");
  f.workspace = at(512);
  EXPECT_EQ(fault_of(plain, f), "");
  const Nothing biased(nullptr, false, true), adding(nullptr, true, false);
  EXPECT_EQ(fault_of(biased, f), "an address is missing");
  f.bias = at(16);
  EXPECT_EQ(fault_of(biased, f), "an address is not aligned");
  f.bias = at(256);
  EXPECT_EQ(fault_of(biased, f), "");
  EXPECT_EQ(fault_of(adding, f), "an address is missing");
  f.addend = f.result;
  EXPECT_EQ(fault_of(adding, f), "");
}

}  // namespace
}  // namespace fluid::cuda::gpu_plan_test
