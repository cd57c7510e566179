#include "passes/memory_plan.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ops/source_kind.h"
#include "passes/pass.h"
#include "tests/support/plain_target.h"
#include "tests/support/small_programs.h"

namespace fluid::testing::memory_plan_test {
namespace {

struct Planned {
  std::unique_ptr<ir::Program> program;
  MemoryPlan plan;
};

Planned planned(const ConvNet& net, const Options& options) {
  Planned p{conv_net(net), {}};
  run_passes(*p.program, pipeline(options), options, PlainTarget());
  p.plan = memory_plan(*p.program, options);
  return p;
}

TEST(MemoryPlan, SeedNetworkFits) {
  const Options options{.mode = Mode::train, .batch = 128};
  const Planned p = planned({}, options);
  verify_plan(p.plan, *p.program, options);
  EXPECT_LE(p.plan.total(1), 22 << 20)
      << "peak at " << p.plan.peak << ", transient " << p.plan.transient;
}

TEST(MemoryPlan, PartsAddUpToNoMoreThanTheTotal) {
  const Options options{.mode = Mode::train, .batch = 128};
  const Planned p = planned({}, options);
  int64_t sum = 0;
  for (const auto& [category, bytes] : p.plan.at_peak) sum += bytes;
  EXPECT_LE(sum, p.plan.total(1));
  EXPECT_GE(sum, p.plan.total(1) / 2);
}

TEST(MemoryPlan, TellsParametersFromTheOptimizersState) {
  const Planned p = planned({}, {.mode = Mode::train, .batch = 128});
  int64_t parameters = 0;
  const std::unique_ptr<ir::Program> recorded = conv_net({});
  for (const auto& op : recorded->main().ops) {
    if (source_kind(*op) == SourceKind::parameter) parameters += op->result().type().bytes_at(1);
  }
  EXPECT_EQ(p.plan.at_peak.at(RangeCategory::parameter), parameters);
  EXPECT_GE(p.plan.at_peak.at(RangeCategory::optimizer), 2 * parameters) << "Adam's two moments";
  const Planned inference = planned({}, {.mode = Mode::eval, .batch = 128});
  EXPECT_FALSE(inference.plan.at_peak.contains(RangeCategory::optimizer));
}

TEST(MemoryPlan, EveryModeIsSafe) {
  for (const Mode mode : {Mode::train, Mode::eval, Mode::predict, Mode::init}) {
    for (const bool fuse : {true, false}) {
      for (const bool guard : {true, false}) {
        const Options options{.mode = mode, .batch = 7, .fuse = fuse, .guard_plan = guard};
        const Planned p = planned({.size = 20}, options);
        EXPECT_NO_THROW(verify_plan(p.plan, *p.program, options));
      }
    }
  }
}

/// The new value is written directly to the variable's memory, wherever the variable is declared.
TEST(MemoryPlan, VariablesThatAreOnlyWrittenAreOverwrittenAtAnyTime) {
  const Options options{.batch = 4};
  const std::unique_ptr<ir::Program> program = ir::parse(R"(program @p {
    %x = data "x" : f32[?, 4]
    %m = mean(%x) {axes = [0]} : f32[4]
    %e = exp(%m) : f32[4]
    %v = sum(%e) : f32[]
    %s = state "last" : f32[4]
    store "last" (%e)
    output "v" = %v
  })",
                                                         "p.fir");
  run_passes(*program, pipeline(options), options, PlainTarget());
  const MemoryPlan plan = memory_plan(*program, options);
  EXPECT_EQ(plan.values.at(program->main().find("state", "last")->result()).region, Region::state);
  EXPECT_NO_THROW(verify_plan(plan, *program, options));
}

/// The categories follow from the order of the ops, not from the addresses of their values.
TEST(MemoryPlan, FeedsAreNotCountedAsTheirAliases) {
  const Options options{.mode = Mode::eval, .batch = 4};
  std::string text = "program @p {";
  for (const char number : std::string("01234567")) {
    for (const char c : std::string(R"(
      %x# = data "x#" : f32[?, 2, 64]
      %f# = reshape(%x#) {to = f32[?, 128]} : f32[?, 128]
      %s# = sum(%f#) : f32[]
      output "s#" = %s#)")) {
      text += c == '#' ? number : c;
    }
  }
  const std::unique_ptr<ir::Program> program = ir::parse(text + "\n}", "p.fir");
  run_passes(*program, pipeline(options), options, PlainTarget());
  const MemoryPlan plan = memory_plan(*program, options);
  EXPECT_EQ(plan.at_peak.at(RangeCategory::feed), int64_t{8} * 4 * 2 * 64 * 4);
  EXPECT_FALSE(plan.at_peak.contains(RangeCategory::activation));
}

TEST(MemoryPlan, TheCheckerFindsAnOverlap) {
  const Options options{.mode = Mode::train, .batch = 4};
  Planned p = planned({.size = 20}, options);
  for (auto& [value, range] : p.plan.values) {
    if (range.region == Region::transient) range.offset = 0;
  }
  EXPECT_THROW(verify_plan(p.plan, *p.program, options), InternalError);
}

TEST(MemoryPlan, TheCheckerFindsARangeOutsideItsRegion) {
  const Options options{.mode = Mode::eval, .batch = 4};
  Planned p = planned({.size = 20}, options);
  p.plan.values.begin()->second.offset = p.plan.total(1) + 64;
  EXPECT_THROW(verify_plan(p.plan, *p.program, options), InternalError);
}

}  // namespace
}  // namespace fluid::testing::memory_plan_test
