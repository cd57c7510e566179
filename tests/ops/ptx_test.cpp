// The GPU kernels of all ops' samples are valid code.

#include "tests/support/ptx.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/kernel_runner.h"
#include "tests/support/op_harness.h"

namespace fluid::testing::ptx_test {
namespace {

/// The sample with numbers of `dtype` where it has floats; null where the op takes none such.
std::optional<Built> built(const OpTest& test, const Sample& sample, DType dtype) {
  return is_float(dtype) ? build(test, sample, dtype) : build_of_integers(test, sample, dtype);
}

constexpr size_t kShards = 3;  // of the ops, so that no case takes long

void expect_ops_assemble(DType dtype, size_t shard) {
  const std::string assembler = ptx_assembler();
  if (assembler.empty()) GTEST_SKIP() << "no ptxas in /usr/local/cuda/bin or on the PATH";
  std::vector<kir::Kernel> kernels;
  const std::vector<OpTest>& tests = op_tests();
  for (size_t t = shard; t < tests.size(); t += kShards) {
    const OpTest& test = tests[t];
    for (size_t s = 0; s < test.samples.size(); ++s) {
      if (!is_tested(test, s, dtype, Processor::emulated_gpu)) continue;
      const std::optional<Built> one = built(test, test.samples[s], dtype);
      if (!one) continue;
      expand_all(one->program->main());
      for (std::vector<kir::Kernel>& passes : gpu_kernels_of(one->program->main())) {
        for (kir::Kernel& kernel : passes) {
          kernel.name = test.op;
          kernels.push_back(std::move(kernel));
        }
      }
    }
  }
  // Initial values are computed in f64, once. Gradients of attention spill for half-precision
  // operands of depth 4 and less, whose products are unrolled.
  const auto spilling = std::ranges::stable_partition(kernels, [](const kir::Kernel& kernel) {
    return !kernel.name.starts_with("truncated_normal") &&
           !kernel.name.starts_with("attention_grad");
  });
  const std::vector<kir::Kernel> may_spill(spilling.begin(), spilling.end());
  kernels.erase(spilling.begin(), spilling.end());
  expect_assembles(assembler, std::move(kernels), gpu_architectures());
  if (!may_spill.empty())
    expect_assembles(assembler, may_spill, gpu_architectures(), {.spilled = 256});
}

class Ptx : public ::testing::TestWithParam<std::tuple<DType, size_t>> {};

TEST_P(Ptx, OfEveryOpAssembles) {
  const auto [dtype, shard] = GetParam();
  expect_ops_assemble(dtype, shard);
}

std::string case_name(const ::testing::TestParamInfo<std::tuple<DType, size_t>>& info) {
  const auto& [dtype, shard] = info.param;
  return std::string(name_of(dtype)) + "_" + std::to_string(shard);
}

INSTANTIATE_TEST_SUITE_P(Numbers, Ptx,
                         ::testing::Combine(::testing::Values(f64, f32, f16, bf16, i64, i32, u8,
                                                              boolean),
                                            ::testing::Range(size_t{0}, kShards)),
                         case_name);

}  // namespace
}  // namespace fluid::testing::ptx_test
