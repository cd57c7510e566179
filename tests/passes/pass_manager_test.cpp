#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <map>
#include <regex>

#include "frontend/optimizers.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/inference.h"
#include "passes/line_diff.h"
#include "passes/pass.h"
#include "tests/support/golden_text.h"
#include "tests/support/plain_target.h"
#include "tests/support/small_programs.h"
#include "tests/support/training.h"

namespace fluid::testing::pass_manager_test {
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

TEST(PassManager, RejectsAPassWhoseNeedsNobodyGave) {
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
                       .provides = {},
                       .run = [](ir::Program& p, const Options&, const Target&) {
                         p.main().ops.back()->results[0].type.dtype = DType::f64;
                         return true;
                       }};
  const auto program = ir::parse(kProgram, "p.fir");
  EXPECT_THROW(run_passes(*program, {broken}, {}, PlainTarget()), InternalError);
}

/// An executor's passes: what one breaks and the next mends is not seen, what is left broken is.
TEST(PassManager, VerifiesAfterTheLastPassWhereNotAfterEach) {
  static const auto retype = [](ir::Program& p, DType dtype) {
    p.main().ops.back()->results[0].type.dtype = dtype;
    return true;
  };
  Pass breaks = {.name = "breaks", .doc = "", .needs = {}, .provides = {}, .run = nullptr};
  Pass mends = breaks;
  breaks.run = [](ir::Program& p, const Options&, const Target&) { return retype(p, f64); };
  mends.run = [](ir::Program& p, const Options&, const Target&) { return retype(p, f32); };
  const auto run = [&](const std::vector<Pass>& passes, bool each) {
    run_passes(*ir::parse(kProgram, "p.fir"), passes, {.verify_each = each}, PlainTarget());
  };
  EXPECT_THROW(run({breaks, mends}, true), InternalError);
  EXPECT_NO_THROW(run({breaks, mends}, false));
  EXPECT_THROW(run({mends, breaks}, false), InternalError);
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
  EXPECT_EQ(omitted_outputs(*program, {.feeds = {"image"}}), std::vector<std::string>{"loss"});
  EXPECT_TRUE(omitted_outputs(*program, {.feeds = {"image", "label"}}).empty());
}

/// Ops without a place in the user's source get none, least of all one in Fluid's own.
TEST(Stages, NameNoLineOfFluidsOwnSources) {
  for (const Mode mode : {Mode::train, Mode::eval, Mode::init}) {
    for (const std::string file : {"net.cpp", ""}) {
      const auto program = conv_net({.dropout = 0.5});
      for (const auto& op : program->main().ops) op->loc = Loc{file, 7};
      const Options options{.mode = mode, .batch = 4};
      run_passes(*program, pipeline(options), options, LibraryTarget());
      for (const auto& graph : program->graphs) {
        for (const auto& op : graph->ops) {
          EXPECT_TRUE(op->loc.file.empty() || op->loc.file == file)
              << ir::describe(*op) << " @ " << op->loc.str();
        }
      }
    }
  }
}

/// Without `@ "file.cpp:12"`: lines of this test's own sources.
std::string without_locations(const std::string& text) {
  return std::regex_replace(text, std::regex("  @ \"[^\"]*\""), "");
}

/// The text of mnist_fluid's training step as recorded, then the lines that each pass changes;
/// "simplify.2.diff" is the second run of simplify. A target with made-up costs keeps the texts the
/// same on every machine.
TEST(Stages, MatchTheGoldenTexts) {
  Program net = mnist_fluid_program();
  minimize(net.ir().main().outputs[0].value, SGD{.lr = 0.01});
  expect_golden_text("mnist_fluid/recorded.fir", without_locations(ir::print_by_id(net.ir())));
  const Options options{.mode = Mode::train, .batch = 100};
  const std::vector<Pass> passes = pipeline(options);
  const auto reports = run_passes(net.ir(), passes, options, LibraryTarget(), /*dump=*/true);
  std::map<std::string, int> runs;
  for (size_t i = 0; i < passes.size(); ++i) {
    const int run = ++runs[passes[i].name];
    const std::string name = fmt::format("mnist_fluid/{}{}.diff", passes[i].name,
                                         run == 1 ? "" : fmt::format(".{}", run));
    const std::string change = reports[i].changed ? reports[i].dump : "no change\n";
    expect_golden_text(name, "# " + passes[i].doc + "\n" + without_locations(change));
  }
  const std::string folder = std::string(FLUID_SOURCE_DIR) + "/tests/golden/mnist_fluid";
  const std::filesystem::directory_iterator files(folder);
  EXPECT_EQ(std::distance(begin(files), end(files)), std::ssize(passes) + 1)
      << "a file of a pass that is gone from the pipeline is left in " << folder;
}

}  // namespace
}  // namespace fluid::testing::pass_manager_test
