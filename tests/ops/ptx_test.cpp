// The GPU kernels of all ops' samples are valid code.

#include "tests/support/ptx.h"

#include <gtest/gtest.h>

#include "tests/support/kernel_runner.h"
#include "tests/support/op_harness.h"

namespace fluid::testing {
namespace {

/// With floats of `dtype`.
void expect_every_op_assembles(DType dtype, const std::vector<std::string>& architectures) {
  const std::string assembler = ptx_assembler();
  if (assembler.empty()) GTEST_SKIP() << "no ptxas in /usr/local/cuda/bin or on the PATH";
  std::vector<kir::Kernel> kernels;
  for (const OpTest& test : op_tests()) {
    for (const Sample& sample : test.samples) {
      const Built built = build(test, sample, dtype);
      expand_all(built.program->main());
      for (std::vector<kir::Kernel>& passes : gpu_kernels_of(built.program->main())) {
        for (kir::Kernel& kernel : passes) {
          kernel.name = test.op;
          kernels.push_back(std::move(kernel));
        }
      }
    }
  }
  expect_assembles(assembler, std::move(kernels), architectures);
}

TEST(Ptx, EveryOpAssembles) { expect_every_op_assembles(f32, gpu_architectures()); }

TEST(Ptx, EveryOpAssemblesInHalves) {
  expect_every_op_assembles(f16, {"sm_120"});
  expect_every_op_assembles(bf16, {"sm_100"});
}

TEST(Ptx, EveryOpAssemblesInF64) { expect_every_op_assembles(f64, {"sm_80"}); }

}  // namespace
}  // namespace fluid::testing
