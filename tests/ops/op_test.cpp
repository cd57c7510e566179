// Runs every check of tests/support/op_harness.h on every registered op.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/support/op_harness.h"

namespace fluid::testing::op_test {
namespace {

class Ops : public ::testing::TestWithParam<size_t> {
 protected:
  const OpTest& test() const { return op_tests()[GetParam()]; }
  const OpDef& def() const { return op_named(test().op); }
  static void expect_none(const Faults& faults) {
    for (const std::string& f : faults) ADD_FAILURE() << f;
  }
};

TEST_P(Ops, GivesTheReferencesResults) { expect_none(check_forward(test(), def())); }
TEST_P(Ops, GradientIsTheFiniteDifference) { expect_none(check_gradient(test(), def())); }
TEST_P(Ops, CostIsThatOfTheLoweredForm) { expect_none(check_cost(test(), def())); }
TEST_P(Ops, IsInPlaceWhereItMayBe) { expect_none(check_in_place(test(), def())); }
TEST_P(Ops, GeneratedKernelsAgree) { expect_none(check_kernels(test())); }
TEST_P(Ops, GeneratedIntegerKernelsAgree) { expect_none(check_integer_kernels(test())); }
TEST_P(Ops, GpuKernelsAgree) { expect_none(check_kernels(test(), Processor::emulated_gpu)); }
TEST_P(Ops, GpuIntegerKernelsAgree) {
  expect_none(check_integer_kernels(test(), Processor::emulated_gpu));
}
TEST_P(Ops, PrintsAndParses) { expect_none(check_text(test())); }
TEST_P(Ops, NamesMistakes) { expect_none(check_bad_uses(test())); }

/// The kernels of ops that write their own have samples that three threads share.
TEST(LoopsOps, HaveSamplesOfSeveralBlocks) {
  std::map<std::string, int64_t> most;
  for (const OpTest& test : op_tests()) {
    if (!std::holds_alternative<Loops>(*op_named(test.op).lower)) continue;
    for (const Sample& sample : test.samples) {
      const Built b = build(test, sample, f32);
      for (const kir::Kernel& kernel : kernels_of(b.program->main())) {
        most[test.op] = std::max(most[test.op], kir::evaluate(kernel.blocks, b.batch));
      }
    }
  }
  EXPECT_GT(most.size(), 10U);
  for (const auto& [op, blocks] : most) EXPECT_GE(blocks, 3) << op;
}

std::vector<size_t> all_tests() {
  std::vector<size_t> indices(op_tests().size());
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = i;
  return indices;
}

INSTANTIATE_TEST_SUITE_P(Table, Ops, ::testing::ValuesIn(all_tests()), [](const auto& info) {
  return std::to_string(info.param) + "_" + op_tests()[info.param].op;
});

}  // namespace
}  // namespace fluid::testing::op_test
