#include "tests/support/ptx.h"

#include <gtest/gtest.h>

#include "codegen/gpu.h"
#include "tests/support/errors.h"
#include "tests/support/kir_samples.h"

namespace fluid::testing::ptx_test {
namespace {

TEST(Ptx, EveryScalarAssembles) {
  const std::string assembler = ptx_assembler();
  if (assembler.empty()) GTEST_SKIP() << "no ptxas in /usr/local/cuda/bin or on the PATH";
  std::vector<kir::Kernel> kernels;
  for (const kir::Kernel& kernel : every_scalar_kernels()) {
    for (kir::Kernel& pass : split_off_finish(kernel)) kernels.push_back(std::move(pass));
  }
  expect_assembles(assembler, std::move(kernels), gpu_architectures());
}

TEST(Ptx, CallsNothing) {
  for (const kir::Kernel& kernel : every_scalar_kernels()) {
    const std::string text = compile_ptx(split_off_finish(kernel), "sm_90").ptx;
    EXPECT_EQ(text.find("call"), std::string::npos) << kernel.name;
    EXPECT_NE(text.find(".entry " + kernel.name + "("), std::string::npos);
    EXPECT_NE(text.find("%ctaid.x"), std::string::npos);
  }
}

TEST(Ptx, RejectsOtherArchitectures) {
  for (const char* arch : {"gfx90a", "sm_70", "sm_", "sm_90x", ""}) {
    expect_user_error(
        [&] { compile_ptx({}, arch); },
        "no code for the GPU architecture '" + std::string(arch) + "': give sm_80 or newer");
  }
}

}  // namespace
}  // namespace fluid::testing::ptx_test
