#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "passes/inference.h"
#include "passes/line_diff.h"
#include "passes/pass.h"
#include "tests/support/golden_text.h"
#include "tests/support/plain_target.h"
#include "tests/support/small_programs.h"

namespace fluid::testing {
namespace {

constexpr std::string_view kProgram = R"(program @p {
  %x = data "x" : f32[?]
  %dead = exp(%x) : f32[?]
  %y = neg(%x) : f32[?]
  output "y" = %y
}
)";

const Pass& pass_named(std::string_view name) {
  return *std::ranges::find(all_passes(), name, &Pass::name);
}

TEST(PassManager, RefusesAPassWhoseNeedsNobodyGave) {
  const auto program = ir::parse(kProgram, "p.fir");
  EXPECT_THROW(run_passes(*program, {pass_named("cse")}, {}, PlainTarget()), InternalError);
  EXPECT_NO_THROW(
      run_passes(*program, {pass_named("infer_types"), pass_named("cse")}, {}, PlainTarget()));
}

TEST(PassManager, DumpsWhatChangedAndNothingElse) {
  const auto program = ir::parse(kProgram, "p.fir");
  const auto reports = run_passes(*program, {pass_named("dce"), pass_named("dce")}, {},
                                  PlainTarget(), /*dump=*/true);
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_TRUE(reports[0].changed);
  EXPECT_NE(reports[0].dump.find("-  %dead = exp(%x)"), std::string::npos) << reports[0].dump;
  EXPECT_EQ(reports[0].dump.find("data"), std::string::npos) << reports[0].dump;
  EXPECT_FALSE(reports[1].changed);
  EXPECT_EQ(reports[1].dump, "");
}

TEST(PassManager, CatchesAPassThatBreaksTheProgram) {
  const Pass broken = {.name = "broken",
                       .doc = "Gives a result another type.",
                       .needs = {},
                       .gives = {},
                       .run = [](ir::Program& p, const Options&, const Target&) {
                         p.main().ops.back()->results[0].type.dtype = DType::f64;
                         return true;
                       }};
  const auto program = ir::parse(kProgram, "p.fir");
  EXPECT_THROW(run_passes(*program, {broken}, {}, PlainTarget()), InternalError);
}

TEST(PassManager, EveryPassOfThePipelineIsListedByName) {
  for (const Mode mode : {Mode::train, Mode::eval, Mode::predict, Mode::init}) {
    for (const Pass& pass : pipeline({.mode = mode})) {
      EXPECT_NE(std::ranges::find(all_passes(), pass.name, &Pass::name), all_passes().end())
          << pass.name;
      EXPECT_FALSE(pass.doc.empty());
    }
  }
}

TEST(PassManager, DiffShowsLinesInOrder) {
  EXPECT_EQ(line_diff("a\nb\nc\n", "a\nx\nc\nd\n"), "-b\n+x\n+d\n");
  EXPECT_EQ(line_diff("same\n", "same\n"), "");
}

TEST(Inference, NamesTheOutputsLeftOut) {
  const auto program = conv_net();
  EXPECT_EQ(outputs_left_out(*program, {.feeds = {"image"}}), std::vector<std::string>{"loss"});
  EXPECT_TRUE(outputs_left_out(*program, {.feeds = {"image", "label"}}).empty());
}

/// The program after the stages of the pipeline that are the same for every target.
TEST(Stages, MatchTheGoldenTexts) {
  const auto program = conv_net({.size = 28, .first = 20, .second = 20, .optimizer = "sgd"});
  const Options options{.mode = Mode::train, .batch = 100};
  std::vector<Pass> stage;
  for (const Pass& pass : pipeline(options)) {
    stage.push_back(pass);
    const bool ends = pass.name == "append_backward" || pass.name == "expand_optimizer" ||
                      pass.name == "own_values";
    if (!ends) continue;
    const auto copy = program->clone();
    run_passes(*copy, stage, options, PlainTarget());
    for (const auto& op : copy->main().ops) op->loc = {};  // lines of the ops' own files
    expect_golden_text("conv_net." + pass.name + ".fir", ir::print(*copy));
  }
}

}  // namespace
}  // namespace fluid::testing
