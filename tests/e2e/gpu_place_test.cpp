// fluidrun on a GPU that a library of ours stands in for: the same commands, the same results.

#include "tests/support/parallel_test.h"

namespace fluid {
namespace {

class GpuPrograms : public ParallelTest {
 protected:
  void SetUp() override {
    ParallelTest::SetUp();
    before_ = "export FLUID_GPU_LIBRARY=" + std::string(FLUID_BINARY_DIR) +
              "/gpu_libraries/stand_in.so; ";
  }

  std::string succeed(const std::string& command) const {
    const Result result = run(command);
    EXPECT_EQ(result.code, 0) << command << ": " << result.output;
    return result.output;
  }
};

TEST_F(GpuPrograms, TrainAsOnTheCpu) {
  const std::string flags = "--epochs 3 --dtype f64 --batch 16 --val synthetic-linear?limit=37 ";
  succeed(train(flags + "--place cpu --log-json cpu.json --save cpu.safetensors"));
  for (const std::string pace : {"early", "late", "random"}) {
    before_ += "export FLUID_STAND_IN_PACE=" + pace + "; ";
    const std::string log = pace + ".json";
    succeed(train(flags + "--place cuda:0 --save gpu.safetensors --log-json " + log));
    EXPECT_EQ(losses(log).size(), 21U);
    expect_losses(log, "cpu.json");
  }
  const std::string data = " --data synthetic-linear?limit=21 --batch 8 --dtype f64 --params ";
  for (const std::string command : {"eval", "predict"}) {
    const std::string expected =
        succeed(command + " line.fir --place cpu" + data + "cpu.safetensors");
    EXPECT_EQ(succeed(command + " line.fir --place auto" + data + "gpu.safetensors"), expected);
  }
}

TEST_F(GpuPrograms, GoOnFromCheckpointsOfTheOtherPlace) {
  const std::string flags = "--dtype f64 --batch 16 --checkpoint-dir saved --resume ";
  succeed(train("--dtype f64 --batch 16 --epochs 3 --place cpu --log-json whole.json"));
  succeed(train(flags + "--epochs 1 --place cpu --log-json parts.json"));
  const std::string there = succeed(train(flags + "--epochs 2 --place cuda --log-json parts.json"));
  EXPECT_NE(there.find("place cuda (was none)"), std::string::npos) << there;
  succeed(train(flags + "--epochs 3 --place cpu --log-json parts.json"));
  expect_losses("parts.json", "whole.json");
}

/// Convolutions, pools, labels: the example, on a few digits.
TEST_F(GpuPrograms, TrainANetworkOfTheExamples) {
  const std::string command = "train mnist_fluid --data digits?limit=4 --batch 2 --epochs 1 ";
  succeed(command + "--place cpu --log-json cpu.json");
  const std::string said =
      succeed(command + "--place cuda:0 --profile --profile-warmup 0 --log-json gpu.json");
  const std::vector<double> expected = losses("cpu.json"), seen = losses("gpu.json");
  ASSERT_EQ(seen.size(), 2U);
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_NEAR(seen[i], expected[i], 1e-4);
  EXPECT_NE(said.find("profile of mnist_fluid"), std::string::npos) << said;
  EXPECT_EQ(said.find(" inf "), std::string::npos) << said;
}

TEST_F(GpuPrograms, RunAndAreTimed) {
  const std::string input = "run line.fir --input x=1x2xf32=1,2 --place ";
  EXPECT_EQ(succeed(input + "cuda:0"), succeed(input + "cpu"));
  const std::string bench = succeed(
      "bench line.fir --data synthetic-linear?limit=64 --batch 8 --steps 2 --warmup 1 --repeat 1");
  EXPECT_NE(bench.find(" ms/step"), std::string::npos) << bench;
}

TEST_F(GpuPrograms, AreRefusedWhereTheyDoNotFit) {
  before_ += "export FLUID_STAND_IN_MEMORY=8192; ";
  const Result result =
      run("train line.fir --data synthetic-linear?limit=1000 --batch 1000 --place cuda:0");
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_NE(result.output.find("a step of 1000 samples needs"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("the limit is 8.00 KiB"), std::string::npos) << result.output;
}

}  // namespace
}  // namespace fluid
