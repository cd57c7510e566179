// Parameters that are inf or NaN: what training says and writes, and what C++ asks.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "executor/executor.h"
#include "frontend/files/safetensors.h"
#include "frontend/fluid.h"
#include "ir/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/file_bytes.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::nonfinite_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// `fast.fir`: the gradient of b is 10, that of ten is b = 0. With --lr 1e38 the first update makes
/// b -inf, from a loss of 0.
class Nonfinite : public FluidrunTest {
 protected:
  void SetUp() override {
    FluidrunTest::SetUp();
    std::ofstream(dir_.file("fast.fir")) << R"(program @fast {
  %x = data "x" : f32[?, 2]
  %m = mean(%x) : f32[]
  %ten = param "ten" {init = "constant", value = 10.0} : f32[]
  %b = param "b" {init = "constant", value = 0.0} : f32[]
  %loss = mul(%b, %ten) : f32[]
  train(%loss) {optimizer = "sgd", lr = 1e38}
  output "loss" = %loss
  output "m" = %m
}
)";
  }

  void expect_kept_apart(const std::string& path) const {
    EXPECT_EQ(read_file(dir_.file(path)), "old");
    const TensorFile file = read_safetensors(dir_.file(path + ".nonfinite"));
    EXPECT_EQ(file.find("ten")->item(), 10);
    EXPECT_EQ(file.find("b")->item(), -kInf);
  }

  static inline const std::string kTrain =
      "train fast.fir --data synthetic-linear?n=10 --batch 10 --max-steps 1 ";
  static inline const std::string kMessage = "1 of 2 parameters not finite, 'b' first";
};

TEST_F(Nonfinite, ParametersAreNotSavedAsGoodOnes) {
  write_plain(dir_.file("m.safetensors"), "old");
  const Result result = run(kTrain + "--save m.safetensors");
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_NE(result.output.find(kMessage), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("saved m.safetensors.nonfinite\n"), std::string::npos)
      << result.output;
  expect_kept_apart("m.safetensors");
}

TEST_F(Nonfinite, ParametersEndTrainingThatSavesNothing) { expect_late_error(kTrain, kMessage); }

TEST_F(Nonfinite, ParametersOfTheBestEpochAreKeptApart) {
  write_plain(dir_.file("best.safetensors"), "old");
  const Result result =
      run(kTrain + "--val synthetic-linear?n=10 --best m --save-best best.safetensors");
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_NE(result.output.find("saved best.safetensors.nonfinite\n"), std::string::npos)
      << result.output;
  expect_kept_apart("best.safetensors");
}

TEST_F(Nonfinite, ParametersAreSavedApartWhereNoCheckpointIsWritten) {
  write_plain(dir_.file("m.safetensors"), "old");
  const Result result = run(kTrain + "--save m.safetensors --checkpoint-dir run");
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_NE(result.output.find("'b' holds -inf"), std::string::npos) << result.output;
  expect_kept_apart("m.safetensors");
}

TEST_F(Nonfinite, FiniteParametersGoUnderTheNameAsked) {
  const Result result = run(kTrain + "--lr 0.1 --save m.safetensors");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_FALSE(std::filesystem::exists(dir_.file("m.safetensors.nonfinite")));
  EXPECT_EQ(read_safetensors(dir_.file("m.safetensors")).find("b")->item(), -1);
}

TEST_F(Nonfinite, AnExecutorNamesAndSavesThem) {
  Executor executor(Program::load(dir_.file("line.fir")), cpu(), {.batch = 1});
  EXPECT_TRUE(executor.nonfinite_parameters().empty());
  for (const float bad : {kInf, -kInf, std::nanf("")}) {
    executor.set_parameter("w", Tensor::of<float>({2, 1}, std::vector<float>{1, bad}));
    EXPECT_EQ(executor.nonfinite_parameters(), (std::vector<std::string>{"w"}));
  }
  executor.save(dir_.file("f"));
  EXPECT_TRUE(std::isnan(read_safetensors(dir_.file("f")).find("w")->at(1)));
}

TEST_F(Nonfinite, ANumberBeyondTheParametersRangeIsRejected) {
  Executor executor(Program::load(dir_.file("line.fir")), cpu(), {.batch = 1});
  const Tensor large = Tensor::of<double>({2, 1}, std::vector<double>{1, -1e39});
  const std::string message = "'w': element 1 is -1e+39, beyond the range of f32";
  expect_user_error([&] { executor.set_parameter("w", large); }, message);
  write_safetensors(dir_.file("w.safetensors"), {{"w", large}});
  expect_user_error([&] { executor.load(dir_.file("w.safetensors")); }, message);
  EXPECT_EQ(executor.parameter("w").at(1), 0);
  const Tensor inf = Tensor::of<double>({2, 1}, std::vector<double>{1, kInf});
  executor.set_parameter("w", inf);
  EXPECT_EQ(executor.parameter("w").at(1), kInf);
}

}  // namespace
}  // namespace fluid::nonfinite_test
