// The harness itself: it must miss no op, and find each thing that is broken on purpose.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/broken_ops.h"

namespace fluid::testing::harness_test {
namespace {

/// Whether the op computes: others are places in memory or requests to the passes.
bool computes(const OpDef& def) {
  const Lower& lower = *def.lower;
  return !std::holds_alternative<Source>(lower) && !std::holds_alternative<Store>(lower) &&
         !std::holds_alternative<Directive>(lower) && !std::holds_alternative<GradientsOp>(lower) &&
         !std::holds_alternative<FusedOp>(lower) && !std::holds_alternative<Scan>(lower) &&
         !std::holds_alternative<CollectiveOp>(lower);
}

TEST(Harness, MissesNoOp) {
  std::set<std::string> tested;
  for (const OpTest& test : op_tests()) tested.insert(test.op);
  for (const OpDef& def : op_table()) {
    EXPECT_EQ(tested.contains(*def.name), computes(def)) << *def.name;
  }
}

/// Whether the checks of a sample find what is broken in `def`. Stops at the first such sample.
bool is_found(Break kind, const OpTest& test, const OpDef& def) {
  OpTest one = test;
  return std::ranges::any_of(test.samples, [&](const Sample& sample) {
    one.samples = {sample};
    return !check_for(kind, one, def).empty();
  });
}

class BrokenOps : public ::testing::TestWithParam<Break> {};

TEST_P(BrokenOps, AreFound) {
  for (const OpTest& test : op_tests()) {
    const std::optional<OpDef> def = broken(test, GetParam());
    if (!def) continue;
    EXPECT_TRUE(is_found(GetParam(), test, *def)) << test.op;
  }
}

INSTANTIATE_TEST_SUITE_P(Harness, BrokenOps,
                         ::testing::Values(Break::gradient, Break::forward, Break::infer,
                                           Break::cost, Break::in_place),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

}  // namespace
}  // namespace fluid::testing::harness_test
