// `fluidrun bench` times training steps on data, and inference on a batch or on random numbers.

#include <gtest/gtest.h>

#include <regex>

#include "tests/support/fluidrun_test.h"

namespace fluid::bench_test {
namespace {

using Bench = FluidrunTest;

const std::string kShort = " --warmup 1 --steps 2 --repeat 2 ";

/// The milliseconds of the median step.
double milliseconds(const std::string& output) {
  std::smatch found;
  const std::regex line(R"(^([0-9.]+) ms/step \(median of [^\n]*\), [0-9]+ samples/s\n)");
  EXPECT_TRUE(std::regex_search(output, found, line)) << output;
  return found.empty() ? 0 : std::stod(found[1]);
}

TEST_F(Bench, TimesTraining) {
  const Result result = run("bench line.fir --data synthetic-linear?n=50" + kShort);
  EXPECT_EQ(result.code, 0);
  EXPECT_GT(milliseconds(result.output), 0);
}

/// Without data: floats, bytes of text, and sequences whose length a flag gives.
TEST_F(Bench, TimesInferenceOnRandomNumbers) {
  std::ofstream(dir_.file("length.fir")) << R"(program @p {
  %x = data "x" : f32[?, L]
  %y = relu(%x) : f32[?, L]
  output "y" = %y
})";
  for (const std::string& flags : std::vector<std::string>{
           "line.fir --pipeline predict", "line.fir --pipeline eval --batch 7",
           "lstm_text --pipeline predict", "length.fir --length 5 --pipeline predict"}) {
    SCOPED_TRACE(flags);
    const Result result = run("bench " + flags + kShort);
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_GT(milliseconds(result.output), 0);
    EXPECT_NE(result.output.find("first step "), std::string::npos) << result.output;
  }
}

TEST_F(Bench, TimesInferenceOnABatchOfData) {
  const Result result =
      run("bench line.fir --pipeline predict --data synthetic-linear?n=50 --batch 10" + kShort);
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_GT(milliseconds(result.output), 0);
}

TEST_F(Bench, RejectsOptionsOfTheOtherPipelines) {
  expect_error("bench line.fir", "bench needs --data SPEC: training steps read data");
  expect_error("bench line.fir --data synthetic-linear --length 3",
               "--length is for random numbers: --data gives the length");
  expect_error("bench line.fir --pipeline predict --micro-batches 2",
               "--recipes, --micro-batches and the optimizer's options are for --pipeline train");
  expect_error("bench line.fir --pipeline predict --lr 0.1", "are for --pipeline train");
  expect_error("bench line.fir --pipeline predict --data synthetic-linear --length 3",
               "--data gives the length");
  expect_error("bench line.fir --pipeline predict --length 3", "has no dimension L");
  expect_error("bench line.fir --pipeline init", "init");
}

}  // namespace
}  // namespace fluid::bench_test
