// The GPU kernels of all ops' samples are valid code.

#include "tests/support/ptx.h"

#include <gtest/gtest.h>

#include "tests/support/kernel_runner.h"
#include "tests/support/op_harness.h"

namespace fluid::testing {
namespace {

/// With floats of `dtype`.
void expect_every_op_assembles(DType dtype) {
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
  expect_assembles(assembler, std::move(kernels), gpu_architectures());
}

class Ptx : public ::testing::TestWithParam<DType> {};

TEST_P(Ptx, OfEveryOpAssembles) { expect_every_op_assembles(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Floats, Ptx, ::testing::Values(f64, f32, f16, bf16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace fluid::testing
