// The choice of a precision on a GPU that a library of ours stands in for, with little memory.

#include <regex>

#include "tests/support/gpu_programs_test.h"

namespace fluid::gpu_precision_test {
namespace {

constexpr int64_t kWords = 64 << 10;  // error words outside arenas, one page each

class GpuPrecisions : public GpuProgramsTest {
 protected:
  void SetUp() override {
    GpuProgramsTest::SetUp();
    std::ofstream(dir_.file("tall.fir")) << R"(program @tall {
  %x = data "x" : f32[?, 2]
  %y = data "y" : f32[?, 1]
  %u = param "u" {init = "xavier_uniform"} : f32[2, 128]
  %w = param "w" {init = "xavier_uniform"} : f32[128, 1]
  %h = matmul(%x, %u) : f32[?, 128]
  %p = matmul(%h, %w) : f32[?, 1]
  %e = sub(%p, %y) : f32[?, 1]
  %s = square(%e) : f32[?, 1]
  %loss = mean(%s) : f32[]
  train(%loss) {optimizer = "sgd", lr = 0.001}
  output "loss" = %loss
}
)";
  }

  int64_t planned(const std::string& amp) const {
    const std::string plan = succeed("plan tall.fir --json " + kFlags + "--amp " + amp);
    std::smatch bytes;
    EXPECT_TRUE(std::regex_search(plan, bytes, std::regex("\"arena_bytes\": ([0-9]+)"))) << plan;
    return std::stoll(bytes[1]);
  }
  Result choose(const std::string& variables) const {
    return run_command(before_ + "export " + variables + "; " + kFluidrun +
                       " train tall.fir --data synthetic-linear?limit=512 --max-steps 1 " + kFlags +
                       "--amp auto");
  }

  const std::string kFlags = "--batch 512 --workspace 64KiB --place cuda:0 ";
};

/// Where there is less memory than f32 needs, and where what is not the arena's is missing.
TEST_F(GpuPrecisions, AreThoseThatFit) {
  const int64_t f32 = planned("off"), o1 = planned("o1"), o2 = planned("o2");
  ASSERT_LT(o2 + kWords, f32);
  ASSERT_GT(o1 + kWords, f32);
  for (const int64_t memory : {f32 - 1, f32}) {
    const Result result = choose("FLUID_STAND_IN_MEMORY=" + std::to_string(memory));
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_NE(
        result.output.find("o2, the only one that fits: f32 does not fit, o1 does not fit, o2"),
        std::string::npos)
        << result.output;
  }
  const Result result = choose("FLUID_STAND_IN_MEMORY=100000");
  EXPECT_EQ(result.code, 3) << result.output;
  EXPECT_NE(result.output.find("a step of 512 samples needs"), std::string::npos) << result.output;
}

/// It may not be a precision's fault.
TEST_F(GpuPrecisions, AreNotTriedOnAGpuThatFailed) {
  const Result result = choose("FLUID_STAND_IN_FAILS='graph_launch 2'");
  EXPECT_EQ(result.code, 3) << result.output;
  EXPECT_NE(result.output.find("graph_launch was told to fail"), std::string::npos)
      << result.output;
}

}  // namespace
}  // namespace fluid::gpu_precision_test
