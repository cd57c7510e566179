// Programs, feeds and labels that are well formed and still wrong.

#include <gtest/gtest.h>

#include "frontend/files/npy.h"
#include "ir/atomic_file.h"
#include "tests/support/file_bytes.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::bad_input_test {
namespace {

const std::string kData = " --data synthetic-linear?n=50";

class BadInput : public FluidrunTest {
 protected:
  void SetUp() override {
    FluidrunTest::SetUp();
    write_plain(dir_.file("classes.fir"), R"(program @classes {
  %x = data "x" : f32[?, 2]
  %y = data "y" : i64[?]
  %w = param "w" {init = "constant", value = 0.0} : f32[2, 3]
  %p = matmul(%x, %w) : f32[?, 3]
  %s = softmax_cross_entropy(%p, %y) : f32[?]
  %loss = mean(%s) : f32[]
  train(%loss) {optimizer = "sgd", lr = 0.01}
  output "loss" = %loss
  output "p" = %p
})");
  }

  void expect_program_error(const std::string& text, const std::string& message) {
    write_plain(dir_.file("p.fir"), text);
    expect_error("train p.fir" + kData, message);
  }
  /// line.fir with one thing changed.
  void expect_error_after_change(const std::string& from, const std::string& to,
                                 const std::string& message) {
    std::string text = kLine;
    text.replace(text.find(from), from.size(), to);
    expect_program_error(text, message);
  }
  void write_labels(const std::string& name, const std::vector<int64_t>& labels) {
    write_npy(dir_.file(name), Tensor::of<int64_t>({static_cast<int64_t>(labels.size())}, labels));
  }
};

TEST_F(BadInput, Programs) {
  expect_error_after_change("matmul", "matmull",
                            "p.fir:5: no op 'matmull' (did you mean 'matmul'?)");
  expect_error_after_change("\"sgd\"", "\"sgdd\"",
                            "unknown optimizer 'sgdd' (did you mean 'sgd'?)");
  expect_error_after_change("\"constant\"", "\"constat\"", "unknown initialiser 'constat'");
  expect_error_after_change("lr = 0.01", "rate = 0.01", "train: needs attribute 'lr'");
  expect_error_after_change(
      ": f32[2, 1]", ": f32[3, 1]",
      "matmul: cannot multiply f32[?, 2] by f32[3, 1]: the inner extents are 2 and 3");
  expect_error_after_change("data \"y\"", "data \"x\"", "\"x\" is declared twice");
  expect_error_after_change("f32[?, 2]", "f32[?, -2]", "has a negative dimension");
  expect_error_after_change("f32[?, 2]", "f32[?, 9223372036854775807]",
                            "overflow a 64-bit integer");
  expect_error_after_change("f32[?, 2]", "f32[99999999999999999999]",
                            "p.fir:2:23: 99999999999999999999 is out of range");
  expect_program_error("program @p {}", "program 'p' cannot be trained: it minimizes nothing");
  expect_program_error("program @p {\n  graph @startup {\n  }\n}",
                       "program 'p' is partly compiled: it has a graph 'startup' besides main");
}

TEST_F(BadInput, ProgramsOfTwoRecipesWithoutNames) {
  write_plain(dir_.file("two.fir"),
              "program @p {\n  %w = param \"w\" : f32[2]\n  %s = sum(%w) : f32[]\n  train(%s) "
              "{optimizer = \"sgd\", lr = 0.1}\n  train(%s) {optimizer = \"sgd\", lr = 0.2}\n  "
              "output \"s\" = %s\n}\n");
  for (const std::string command : {"verify", "summary", "plan", "opt --pipeline train"}) {
    const Result result = run(command + " two.fir");
    EXPECT_EQ(result.code, 1) << command << ": " << result.output;
    EXPECT_NE(result.output.find("has several recipes, and this one has no name"),
              std::string::npos)
        << command << ": " << result.output;
  }
  for (const std::string format : {"text", "json", "dot", "svg"}) {  // shows what is there
    const Result result = run("show two.fir --format " + format);
    EXPECT_NE(result.code, 2) << format << ": " << result.output;
  }
}

TEST_F(BadInput, TextThatIsNoProgram) {
  expect_program_error("program @p {\n  %x = data \"x\" : f32[?\n}\n",
                       "p.fir:3:1: expected ']' but found '}'");
  const std::string deep(1'000'000, '[');
  expect_program_error("program @p { a {x = " + deep + "}}",
                       "p.fir:1:22: expected a number or a string");
  expect_program_error("program @p { a(" + std::string(1'000'000, '(') + "}",
                       "p.fir:1:16: expected");
  std::string graphs = "program @p {";
  for (int i = 0; i < 100'000; ++i) graphs += "graph @a {";
  expect_program_error(graphs, "p.fir:1:23: 'graph' is a keyword, not an op");
}

TEST_F(BadInput, Feeds) {
  expect_error("train line.fir --data digits",
               "data 'digits' has columns image, label, but the program's feeds are x, y");
  const std::string run = "run line.fir --input ";
  expect_error(run + "z=1x2xf32=1,2", "the program has no feed 'z' (did you mean 'x'?)");
  expect_error(run + "x=2x3xf32=1,2,3,4,5,6",
               "feed 'x' is f32[2, 3] in a batch of 2; the program takes f32[?, 2]");
  expect_error(run + "x=1x2xi64=1,2",
               "feed 'x' is i64[1, 2] in a batch of 1; the program takes f32[?, 2]");
  write_npy(dir_.file("x.npy"), Tensor(f32, {2, 2}));
  write_labels("y.npy", {0, 1});
  const std::string train = "train classes.fir --data npy:";
  const std::string missing = "feed 'y' is missing: the data 'npy:x=x.npy' has 'x'";
  for (const std::string flags : {"", " --find-lr", " --dry-run", " --overfit 2"}) {
    const std::string output = expect_late_error(train + "x=x.npy" + flags, missing);
    EXPECT_EQ(output.find("compiled"), std::string::npos) << output;
  }
  expect_late_error("eval classes.fir --data npy:x=x.npy", missing);
  expect_late_error("bench classes.fir --batch 2 --data npy:x=x.npy", missing);
  expect_late_error(train + "x=x.npy,y=y.npy --val npy:x=x.npy", missing);
  expect_late_error(train + "x=x.npy,labels=y.npy", "has 'x'");
  expect_error(train + "x=y.npy,y=y.npy",
               "data 'npy:x=y.npy,y=y.npy': column 'x' is i64[?], but the feed is f32[?, 2]");
  expect_late_error(train + "x=x.npy,y=y.npy --val npy:x=x.npy,y=x.npy",
                    "data 'npy:x=x.npy,y=x.npy': column 'y' is f32[?, 2], but the feed is i64[?]");
  write_labels("more.npy", {0, 1, 2});
  expect_error(train + "x=x.npy,y=more.npy",
               "column 'y' has 3 samples, but the first column has 2");
}

TEST_F(BadInput, Labels) {
  write_npy(dir_.file("x.npy"), Tensor(f32, {2, 2}));
  for (const int64_t label : {3, -1}) {
    write_labels("y.npy", {0, label});
    for (const std::string command : {"train", "eval"}) {
      expect_late_error(command + " classes.fir --data npy:x=x.npy,y=y.npy",
                        "softmax_cross_entropy: value " + std::to_string(label) +
                            " of feed 'y' is out of range [0, 3), in sample 1 of "
                            "'npy:x=x.npy,y=y.npy'; the step was not applied");
    }
  }
  // Shuffled or not, and in the validation data: the line of the file.
  std::string rows = "a,b,c\n";
  for (int row = 0; row < 40; ++row) rows += row == 23 ? "0,1,7\n" : "0,1,2\n";
  write_plain(dir_.file("rows.csv"), rows);
  write_plain(dir_.file("good.csv"), "a,b,c\n0,1,2\n");
  const std::string bad = "'csv:rows.csv?label=c&classes=1' ",
                    good = "'csv:good.csv?label=c&classes=1'";
  for (const std::string& command :
       {"train classes.fir --batch 7 --seed 3 --data " + bad,
        "train classes.fir --batch 7 --data " + good + " --val " + bad,
        "eval classes.fir --batch 7 --data " + bad, "predict classes.fir --data " + bad}) {
    expect_late_error(command, "value 7 of feed 'y' is out of range [0, 3), in rows.csv:25");
  }
  const auto expect_csv_error = [&](const std::string& label, const std::string& message) {
    write_plain(dir_.file("t.csv"), "a,b,c\n1,2,0\n2,3," + label + "\n");
    expect_late_error("train classes.fir --data 'csv:t.csv?label=c&classes=1'", message);
  };
  expect_csv_error("7", "value 7 of feed 'y' is out of range [0, 3), in t.csv:3");
  expect_csv_error("-1", "t.csv:3: column 'c': -1 is not a class number");
  expect_csv_error("1e300", "t.csv:3: column 'c': 1e300 is not a class number");
}

TEST_F(BadInput, StepsAboveTheMemoryLimit) {
  const std::string train = "train line.fir --data synthetic-linear?n=1000 --batch 1000 --memory ";
  expect_error(train + "4KiB", "a step of 1000 samples needs ");
  expect_error(train + "4KiB", " KiB, the limit is 4.00 KiB");
  expect_error(train + "1KiB",
               "the limit is 1.00 KiB; take a smaller batch, micro-batches or mixed precision");
}

TEST_F(BadInput, ShapesThatDoNotFitWhileAProgramIsBuilt) {
  const std::string program = std::string(FLUID_BINARY_DIR) + "/mismatch_program";
  const Result built = run_command(program + " --save net.fluid");
  EXPECT_EQ(built.code, 1);
  EXPECT_EQ(
      built.output,
      "mismatch.cpp:13: matmul: cannot multiply f32[?, 8] by f32[9, 3]: the inner extents are "
      "8 and 9\n");
  EXPECT_FALSE(std::filesystem::exists(dir_.file("net.fluid")));
  const auto usage = [&](const std::string& arguments) {
    return run_command(program + " " + arguments).output;
  };
  EXPECT_EQ(usage("--save"),
            "usage: " + program +
                " --save FILE.fluid | --data SPEC [--save FILE.fluid] [--epochs N] [--steps N]\n");
  EXPECT_EQ(usage("--epoch 3"), "no option '--epoch'\n");
  EXPECT_EQ(usage("--epochs 3x"), "--epochs 3x: must be a positive integer\n");
}

}  // namespace
}  // namespace fluid::bad_input_test
