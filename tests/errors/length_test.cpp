// fluidrun and programs with the dimension L: --length where there are no data, else their shape.

#include "frontend/files/npy.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::length_test {
namespace {

constexpr const char* kSmooth = R"(program @smooth {
  %x = data "x" : f32[?, L]
  %w = param "w" {init = "constant", value = 0.5} : f32[1]
  %p = mul(%x, %w) : f32[?, L]
  %e = sub(%p, %x) : f32[?, L]
  %s = square(%e) : f32[?, L]
  %loss = mean(%s) : f32[]
  train(%loss) {optimizer = "sgd", lr = 0.01}
  output "loss" = %loss
  output "p" = %p
}
)";

class FluidrunLength : public FluidrunTest {
 protected:
  void SetUp() override {
    FluidrunTest::SetUp();
    std::ofstream(dir_.file("smooth.fir")) << kSmooth;
    Tensor x(f32, {10, 6});
    for (size_t i = 0; i < 60; ++i) x.as<float>()[i] = static_cast<float>(i % 7);
    write_npy(dir_.file("x.npy"), x);
  }

  /// Expects that a command succeeds and prints all of these texts.
  void expect_output(const std::string& arguments, const std::vector<std::string>& texts) const {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 0) << arguments << ": " << result.output;
    for (const std::string& text : texts) {
      EXPECT_NE(result.output.find(text), std::string::npos) << arguments << ": " << result.output;
    }
  }
};

TEST_F(FluidrunLength, IsGivenWithoutData) {
  expect_output("plan smooth.fir --batch 4 --length 8", {"batch 4, length 8", "arena"});
  expect_output("plan smooth.fir --length 8 --json", {"\"length\": 8"});
  expect_output("summary smooth.fir --batch 4 --length 8", {"batch 4, length 8"});
  expect_output("opt smooth.fir --pipeline train --batch 4 --length 8", {"[?, 8]"});
  expect_output("opt smooth.fir --pass set_length --length 8", {"data \"x\" : f32[?, 8]"});
  expect_output("opt smooth.fir --pass infer_types,amp_cast --amp o1 --length 8 --report", {"f32"});
  expect_output("opt smooth.fir -o smooth.fluid", {});
  expect_output("show smooth.fluid", {"data \"x\" : f32[?, L]"});
  expect_output("show smooth.fluid --length 8", {"data \"x\" : f32[?, 8]"});
  expect_output("show smooth.fluid --length 8 --format svg", {"<svg"});
  expect_output("verify smooth.fluid", {"good"});
}

TEST_F(FluidrunLength, FollowsFromData) {
  expect_output("run smooth.fir --input x=2x3xf32=1,2,3,4,5,6", {"p f32[2, 3] 0.5 1 1.5"});
  expect_output(
      "train smooth.fir --data npy:x=x.npy --batch 4 --val npy:x=x.npy --save p.safetensors",
      {"epoch"});
  expect_output("train smooth.fir --data npy:x=x.npy --batch 4 --max-steps 2 --amp auto",
                {"--amp auto selects"});
  expect_output("bench smooth.fir --data npy:x=x.npy --batch 4 --steps 2 --repeat 2", {"ms/step"});
  expect_output("eval smooth.fir --params p.safetensors --data npy:x=x.npy", {"loss"});
  expect_output("predict smooth.fir --params p.safetensors --data npy:x=x.npy --output p.npy", {});
  EXPECT_EQ(read_npy(dir_.file("p.npy")).str(), "f32[10, 6]");
}

TEST_F(FluidrunLength, MustFitTheProgram) {
  const std::string missing = "program 'smooth' has the dimension L: give --length N";
  for (const char* command : {"plan smooth.fir", "summary smooth.fir",
                              "opt smooth.fir --pipeline train", "show smooth.fir --format dot"}) {
    expect_error(command, missing);
  }
  expect_error("plan line.fir --length 8", "--length 8: program 'line' has no dimension L");
  expect_error("opt line.fir --pass dce --length 8", "--length 8: program 'line'");
  expect_error("show line.fir --length 8", "--length 8: program 'line'");
  expect_error("plan smooth.fir --length 0", "--length 0");
}

}  // namespace
}  // namespace fluid::length_test
