// Tests text for users: the lines of epochs, the summary, notes and warnings.

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <sstream>

#include "executor/host/target_description.h"
#include "ir/atomic_file.h"
#include "tests/support/file_bytes.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::reports_test {
namespace {

using Reports = FluidrunTest;

const std::string kData = " --data synthetic-linear?n=50";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST_F(Reports, EpochsAreAnAlignedTable) {
  const Result result =
      run("train line.fir --val synthetic-linear?n=50 --epochs 10 2>/dev/null" + kData);
  const std::vector<std::string> lines = lines_of(result.output);
  ASSERT_EQ(lines.size(), 11u) << result.output;
  EXPECT_TRUE(lines[0].starts_with("epoch       loss   val_loss   ms/step      time")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with(" 1/10  ")) << lines[1];
  EXPECT_TRUE(lines[10].starts_with("10/10  ")) << lines[10];
  for (const std::string& line : lines) {
    EXPECT_EQ(line.substr(0, line.find("  best")).size(), lines[0].size()) << line;
  }
}

class ProgressBar : public FluidrunTest {
 protected:
  void SetUp() override {
    if (std::system("script -qec true /dev/null < /dev/null > /dev/null 2>&1") != 0) {
      GTEST_SKIP() << "script(1) makes no terminal here";
    }
    FluidrunTest::SetUp();
  }

  /// The bar as it was drawn last, on a terminal of so many columns.
  std::string last_bar(size_t width, const std::string& flags = "") const {
    const Result result = run_command(
        "script -qec \"stty cols " + std::to_string(width) + "; TERM=xterm " + kFluidrun +
        " train line.fir --data 'synthetic-linear?n=1000000' --batch 10 --max-steps 60000" + flags +
        "\" /dev/null < /dev/null");
    const size_t begin = result.output.rfind("\r\x1b[K", result.output.rfind("\r\x1b[K") - 1);
    EXPECT_NE(begin, std::string::npos) << result.output;
    if (begin == std::string::npos) return "";
    const size_t text = begin + 4;
    return result.output.substr(text, result.output.find('\r', text) - text);
  }
};

TEST_F(ProgressBar, FitsTheTerminal) {
  for (const size_t width : {60u, 80u, 200u}) {
    const std::string line = last_bar(width);
    EXPECT_LT(line.size(), width) << line;
    for (const std::string part : {"1/1", "/100000", "loss "}) {
      EXPECT_NE(line.find(part), std::string::npos) << line;
    }
    EXPECT_NE(line.find(width < 200 ? " ms" : "samples/s"), std::string::npos) << line;
    EXPECT_EQ(line.find("scale"), std::string::npos) << line;
  }
}

TEST_F(ProgressBar, ShowsTheLossScaleAndHowManyStepsWereSkipped) {
  for (const size_t width : {110u, 200u}) {
    const std::string line = last_bar(width, " --amp o1 --amp-dtype f16");
    EXPECT_TRUE(std::regex_search(line, std::regex("  scale [0-9.e+]+, [0-9]+ skipped"))) << line;
  }
}

TEST_F(Reports, TheSummaryIsAsWideAsATerminal) {
  write_plain(dir_.file("net.fir"), R"(program @net {
  %x = data "x" : f32[?, 1, 8, 8]
  %f = param "frozen" : f32[1, 1, 8, 8]
  %a = relu(%x) : f32[?, 1, 8, 8]
  %b = relu(%a) : f32[?, 1, 8, 8]
  output "b" = %b
}
)");
  const std::string net = run("summary net.fir --batch 2").output;
  EXPECT_NE(net.find("input x : f32[2, 1, 8, 8]"), std::string::npos) << net;
  EXPECT_NE(net.find("\nrelu_1  "), std::string::npos) << net;
  EXPECT_NE(net.find("\nrelu_2  "), std::string::npos) << net;
  EXPECT_NE(net.find("not trainable                  64        256 B"), std::string::npos) << net;
  const std::string line = run("summary line.fir --batch 10").output;
  EXPECT_NE(line.find("trainable                       2          8 B"), std::string::npos) << line;
  EXPECT_NE(line.find("training: gradients 8 B, optimizer 0 B, saved for backward"),
            std::string::npos)
      << line;
  for (const std::string& row : lines_of(net + line)) EXPECT_LE(row.size(), 80u) << row;
}

TEST_F(Reports, MixedPrecisionSaysWhatItDoesAndWhy) {
  const std::string expected =
      "\nmatmul %p                           bf16        20 B  class: gains from half\n"
      "sub %e                              f32            -  list: sub\n"
      "square %s                           f32            -  class: sensitive to range\n"
      "mean %loss                          f32            -  class: sensitive to range\n"
      "1 of 4 ops in bf16, whose results take 20 B less with a batch of 10\n"
      "3 casts inserted, 1 of them of parameters\n";
  for (const std::string command : {"summary line.fir", "opt line.fir --pass amp_cast --report"}) {
    const Result result = run(command + " --batch 10 --amp o1 --amp-f32 sub");
    EXPECT_NE(result.output.find(expected), std::string::npos) << result.output;
  }
}

/// Without --amp the report is of level o1, and so is the program that is written.
TEST_F(Reports, MixedPrecisionInsertsTheCastsThatItReports) {
  const Result result = run("opt line.fir --pass amp_cast --report -o cast.fir");
  ASSERT_NE(result.output.find("\n3 casts inserted, 1 of them of parameters\n"), std::string::npos)
      << result.output;
  const std::string program = run("show cast.fir").output;
  size_t casts = 0;
  for (size_t at = 0; (at = program.find(" = cast(", at)) != std::string::npos; ++at) ++casts;
  EXPECT_EQ(casts, 3U) << program;
  run("opt line.fir --pass amp_cast --report --amp off -o cast.fir");
  EXPECT_EQ(run("show cast.fir").output.find("bf16"), std::string::npos);
}

/// The arena is also what validation takes.
TEST_F(Reports, O2IsComparedWithF32ByTheTrainingStep) {
  const std::string flags = " --batch 10 --amp o2";
  const Result plan = run("plan line.fir" + flags);
  const Result training = run("train line.fir --epochs 1" + kData + flags);
  const std::regex arena(" arena +([^\n]+)\n");
  const std::regex compared("\nf32 needs ([^\n]+)\n");
  std::smatch total, rest;
  ASSERT_TRUE(std::regex_search(plan.output, total, arena)) << plan.output;
  ASSERT_TRUE(std::regex_search(plan.output, rest, compared)) << plan.output;
  const std::string expected =
      "O2: " + total[1].str() + " for a training step; f32 needs " + rest[1].str() + "\n";
  EXPECT_NE(training.output.find(expected), std::string::npos) << expected << training.output;
}

/// `opt` shows the programs of ranks and micro-batches.
TEST_F(Reports, TheStepsOfRanksAndSlicesCanBeLookedAt) {
  const auto text = [&](const std::string& flags) {
    const std::string batch = flags.find("--batch") == std::string::npos ? " --batch 8" : "";
    return run("opt line.fir --pipeline train --place cpu" + batch + flags).output;
  };
  EXPECT_EQ(text("").find("all_reduce"), std::string::npos);
  EXPECT_NE(text(" --world 2").find("all_reduce"), std::string::npos);
  EXPECT_NE(text(" --world 2 --zero 1 --rank 1").find("reduce_scatter"), std::string::npos);
  EXPECT_NE(text(" --world 2 --reduce-dtype bf16").find("bf16"), std::string::npos);
  const std::string first = text(" --micro-batches 2 --slice first");
  EXPECT_EQ(first.find("store \"w\""), std::string::npos) << first;
  const std::string last = text(" --micro-batches 2");
  EXPECT_NE(last.find("store \"w\""), std::string::npos) << last;
  EXPECT_EQ(last, text(" --batch 16 --micro-batches 4")) << "slices of as many samples";
}

TEST_F(Reports, MixedPrecisionFollowsTheListsOfTheCommandLine) {
  // By op and by layer, whose name goes before that of an op.
  const std::string lists = " --amp o1 --amp-f32 conv2d,matmul --amp-half fc0,softmax";
  const Result report = run("summary mnist_fluid" + lists);
  for (const std::string row :
       {"\nconv2d                 conv0        f32            -  list: conv2d\n",
        "\nconv2d                 conv1        f32            -  list: conv2d\n",
        "\nmatmul                 fc0          bf16        20 B  list: fc0\n",
        "\nadd                    fc0          bf16        20 B  list: fc0\n",
        "\nsoftmax                             bf16        20 B  list: softmax\n"}) {
    EXPECT_NE(report.output.find(row), std::string::npos) << row << report.output;
  }
  const auto trained = [&](const std::string& flags) {
    const Result result =
        run("train mnist_fluid --data digits?n=20 --batch 10 --save w.safetensors" + flags);
    EXPECT_EQ(result.code, 0) << result.output;
    return read_file(dir_.file("w.safetensors"));
  };
  const std::string off = trained(""), o1 = trained(" --amp o1");
  const std::string layer = trained(" --amp o1 --amp-f32 conv0,conv1");
  EXPECT_NE(o1, off);
  EXPECT_EQ(trained(" --amp o1 --amp-f32 conv2d,matmul"), off) << "nothing is left to gain";
  EXPECT_NE(layer, off);
  EXPECT_NE(layer, o1);
  EXPECT_EQ(trained(lists), layer) << "the same but for what training does not compute";
}

TEST_F(Reports, O2SaysWhetherItSaves) {
  const std::string plan = "plan line.fir --batch 10 --amp ";
  const std::string more = run(plan + "o2").output, o1 = run(plan + "o1").output;
  EXPECT_NE(more.find("f32 needs "), std::string::npos) << more;
  EXPECT_NE(more.find(": mixed precision needs more, by "), std::string::npos) << more;
  EXPECT_NE(o1.find(": mixed precision "), std::string::npos) << o1;
  const std::string train = run("train line.fir --batch 10 --amp o2" + kData).output;
  EXPECT_NE(train.find(" for a training step; f32 needs "), std::string::npos) << train;
}

TEST_F(Reports, PlanSaysWhetherTheCpuHasHalfPrecisionInstructions) {
  TargetDescription cpu = describe_host(1);
  cpu.gops = {{"f32_avx2", {60, 60}}};
  write_plain(dir_.file("avx2.json"), to_json(cpu));
  cpu.gops["bf16_avx512"] = {120, 120};
  write_plain(dir_.file("bf16.json"), to_json(cpu));
  const auto says = [&](const std::string& flags, const std::string& dtype) {
    return run("plan line.fir --batch 10 --target " + flags)
               .output.find("\nthis CPU has no " + dtype +
                            " instructions: mixed precision saves no time\n") != std::string::npos;
  };
  EXPECT_TRUE(says("avx2.json --amp o1", "bf16"));
  EXPECT_FALSE(says("avx2.json", "bf16"));
  EXPECT_FALSE(says("bf16.json --amp o1", "bf16"));
  EXPECT_TRUE(says("bf16.json --amp o1 --amp-dtype f16", "f16"));
}

TEST_F(Reports, AutomaticPrecisionSaysWhatItTakesAndKeepsTo) {
  const std::string train = "train line.fir --batch 10 --amp auto --save ";
  const Result first = run(train + "first.safetensors" + kData);
  ASSERT_EQ(first.code, 0) << first.output;
  const size_t begin = first.output.find("\n--amp auto selects ") + 1;
  const std::string said = first.output.substr(begin, first.output.find('\n', begin) - begin);
  EXPECT_NE(said.find(": f32 "), std::string::npos) << first.output;
  EXPECT_NE(said.find(" ms a step in "), std::string::npos) << said;
  EXPECT_NE(said.find(" KiB, o2 "), std::string::npos) << said;
  const std::string again = run(train + "again.safetensors" + kData).output;
  EXPECT_NE(again.find(said + " (measured before)\n"), std::string::npos) << again;
  EXPECT_EQ(run(train + "other.safetensors --amp-dtype f16" + kData).output.find("(measured"),
            std::string::npos);
  // The timing runs do not affect the trained parameters.
  const std::string level = said.starts_with("--amp auto selects f32")        ? "off"
                            : said.starts_with("--amp auto selects bf16 o1,") ? "o1"
                                                                              : "o2";
  ASSERT_EQ(run("train line.fir --batch 10 --save said.safetensors --amp " + level + kData).code,
            0);
  for (const char* name : {"first.safetensors", "again.safetensors"}) {
    EXPECT_EQ(read_file(dir_.file(name)), read_file(dir_.file("said.safetensors"))) << name;
  }
  const std::string bench = "bench line.fir --batch 10 --steps 2 --amp auto" + kData;
  EXPECT_NE(run(bench).output.find(said + " (measured before)\n"), std::string::npos);
  for (const std::string how : {"auto", "off", "o1"}) {
    const Result plan = run("plan line.fir --batch 10 --amp " + how);
    EXPECT_NE(plan.output.find(said + " (measured before)\n"), std::string::npos) << plan.output;
  }
  EXPECT_EQ(run("plan line.fir --batch 11").output.find("--amp auto"), std::string::npos);
}

TEST_F(Reports, ANanLossEndsTheTraining) {
  write_plain(dir_.file("w.safetensors"), "old");
  expect_late_error(
      "train line.fir --lr 1e30 --epochs 100 --save w.safetensors" + kData,
      "training diverged, and nothing is saved; where the data is as it should be, try a "
      "smaller learning rate than 1e+30");
  EXPECT_EQ(read_file(dir_.file("w.safetensors")), "old");
}

TEST_F(Reports, CheckFiniteNamesWhatOverflows) {
  const std::string command = "train line.fir --batch 1 --check-finite";
  write_plain(dir_.file("rows.csv"), "a,b,y\n1,1,1\n1,2,3\n1,2,3\n");
  expect_late_error(command + " --lr 1e30 --data 'csv:rows.csv?label=y&shuffle=0'",
                    "'loss' is inf (square: element 0 of its result");
  write_plain(dir_.file("rows.csv"), "a,b,y\n3e38,1,1\n1,2,3\n");
  const Result result =
      run(command + " --amp o1 --amp-dtype f16 --data 'csv:rows.csv?label=y&shuffle=0'");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("\nstep 1 skipped: "), std::string::npos) << result.output;
  EXPECT_NE(result.output.find(": element 0 of its result "), std::string::npos) << result.output;
}

TEST_F(Reports, ALogThatCannotBeWrittenLosesNoTraining) {
  const Result result = run("train line.fir --log-json /dev/full --save w.safetensors" + kData);
  EXPECT_EQ(result.code, 1);
  const size_t saved = result.output.find("saved w.safetensors\n");
  EXPECT_NE(saved, std::string::npos) << result.output;
  EXPECT_NE(result.output.find("fluidrun: --log-json: cannot write '/dev/full'", saved),
            std::string::npos)
      << result.output;
  EXPECT_TRUE(std::filesystem::exists(dir_.file("w.safetensors")));
}

TEST_F(Reports, UntrainedParametersAreSaid) {
  const std::string note = "without --params: the parameters are untrained, as initialised\n";
  const std::string commands[] = {"eval line.fir" + kData, "predict line.fir" + kData,
                                  "run line.fir --input x=1x2xf32=1,2"};
  for (const std::string& command : commands) {
    const Result result = run(command);
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_NE(result.output.find(note), std::string::npos) << command;
  }
  run("train line.fir --save w.safetensors" + kData);
  for (const std::string& command : commands) {
    const Result result = run(command + " --params w.safetensors");
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_EQ(result.output.find(note), std::string::npos) << command;
  }
}

TEST_F(Reports, AnExampleIsNamedWithoutAnExtension) {
  if (!std::filesystem::exists(FLUID_BINARY_DIR "/examples/mnist_fluid.fluid")) {
    GTEST_SKIP() << "the examples are not recorded";
  }
  expect_error("verify mnist_fluid.fir",
               "no program 'mnist_fluid.fir' (did you mean 'mnist_fluid'?)");
  std::filesystem::create_directory(dir_.file("mnist_fluid"));
  EXPECT_EQ(run("verify mnist_fluid").code, 0);
}

TEST_F(Reports, PredictNeedsRows) {
  write_plain(dir_.file("sum.fir"), R"(program @all {
  %x = data "x" : f32[?, 2]
  %s = mean(%x) : f32[]
  output "total" = %s
}
)");
  expect_late_error("predict sum.fir" + kData,
                    "predict needs an output with one row a sample; there is 'total' f32[]");
  const Result result = run("predict line.fir --output line=@a.npy --output line=@b.npy" + kData);
  EXPECT_EQ(read_file(dir_.file("a.npy")), read_file(dir_.file("b.npy"))) << result.output;
  const Result drawn = run("predict line.fir --output line=@c.npy --draw 2" + kData);
  EXPECT_EQ(read_file(dir_.file("a.npy")), read_file(dir_.file("c.npy")));
  EXPECT_EQ(std::ranges::count(drawn.output, '\n'), std::ranges::count(result.output, '\n') + 2)
      << drawn.output;
}

TEST_F(Reports, HelpSaysTheDefaultsAndTheVersion) {
  const std::string help = run("train --help").output;
  for (const std::string fact : {"--epochs N .*[( ]default: 1\\)", "--seed N .*\\(default: 0\\)",
                                 "--batch N .* 100[^0-9]"}) {
    EXPECT_TRUE(std::regex_search(help, std::regex(fact))) << fact << " in " << help;
  }
  EXPECT_NE(help.find("n=N samples, seed=N"), std::string::npos) << help;
  EXPECT_NE(help.find("\n  stages change the images"), std::string::npos) << help;
  EXPECT_TRUE(run("--version").output.starts_with("fluidrun 0.")) << run("--version").output;
}

}  // namespace
}  // namespace fluid::reports_test
