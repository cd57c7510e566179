// Data-parallel steps in which one rank has no samples. The rank takes part in all collectives,
// including the exchange of error words. Runs on hosts that stand in for GPUs.

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/parallel_test.h"
#include "tests/support/parallel_training.h"
#include "tests/support/processes.h"

namespace fluid::parallel_gpu_empty_test {
namespace {

using testing::Ranks;
using testing::Seen;
using testing::trained_by;

constexpr const char* kLibrary = FLUID_BINARY_DIR "/gpu_libraries/stand_in.so";

class EmptyGpuRank : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("FLUID_GPU_LIBRARY", kLibrary, 1);
    setenv("FLUID_STAND_IN_DEVICES", "3", 1);
    setenv("FLUID_STAND_IN_PACE", "late", 1);
  }
  void TearDown() override {
    for (const char* name : {"FLUID_GPU_LIBRARY", "FLUID_STAND_IN_DEVICES", "FLUID_STAND_IN_PACE"})
      unsetenv(name);
  }

  /// Three steps of an epoch, the last of which has a sample for all ranks but one.
  static void expect_as_on_the_cpu(const Program& net, const ExecutorOptions& options,
                                   double tolerance) {
    for (const int ranks : {2, 3}) {
      SCOPED_TRACE(ranks);
      constexpr int64_t kSteps = 4;
      const int64_t samples = 2 * testing::kWhole + ranks - 1;
      const Seen expected = trained_by(ranks, net, options, kSteps, samples);
      const Seen seen = trained_by(ranks, net, options, kSteps, samples, cuda);
      testing::expect_near(seen.figures, expected.figures, tolerance);
      ASSERT_EQ(seen.parameters.size(), expected.parameters.size());
      for (size_t i = 0; i < seen.parameters.size(); ++i) {
        ASSERT_NEAR(seen.parameters[i], expected.parameters[i], tolerance) << i;
      }
    }
  }
};

TEST_F(EmptyGpuRank, TrainsAsOneOnTheCpuDoes) {
  expect_as_on_the_cpu(testing::parallel_program(), {}, 2e-4);
}

TEST_F(EmptyGpuRank, TrainsInMicroBatches) {
  expect_as_on_the_cpu(testing::parallel_program(), {.micro_batches = 2}, 2e-4);
}

TEST_F(EmptyGpuRank, TrainsWithSharedStateInSmallBuckets) {
  const Buckets small{.first_bytes = 64, .bytes = 128};
  expect_as_on_the_cpu(testing::parallel_program(), {.distributed = {.buckets = small, .zero = 1}},
                       2e-4);
}

TEST_F(EmptyGpuRank, TrainsInHalfPrecision) {
  const AmpOptions amp{.dtype = f16, .loss_scale = {.initial = 1024}};
  expect_as_on_the_cpu(testing::parallel_program(), {.precision = {.amp = amp}}, 2e-2);
}

/// The ranks exchange their error words after the statistics of all layers.
TEST_F(EmptyGpuRank, SharesStatistics) {
  expect_as_on_the_cpu(testing::normalising_program(3), {.distributed = {.sync_bn = true}}, 2e-3);
}

/// In a step for which the last rank has no sample.
TEST_F(EmptyGpuRank, AppliesNoStepThatAnotherRejects) {
  for (const bool syncs_statistics : {false, true}) {
    SCOPED_TRACE(syncs_statistics);
    constexpr int kRanks = 3;
    Ranks ranks(kRanks, [&](const World& world) {
      ExecutorOptions options{
          .batch = testing::kWhole / kRanks, .threads = 1, .distributed = {.world = world}};
      options.distributed.sync_bn = syncs_statistics;
      const Program net =
          syncs_statistics ? testing::normalising_program(3) : testing::parallel_program();
      Executor exe(net, cuda(world.rank), options);
      exe.run(testing::shard_of_batch(world));
      Reader reader(testing::parallel_samples(kRanks - 1),
                    {.batch = options.batch, .rank = world.rank, .world = kRanks});
      exe.prepare({.train = reader.batch_sizes()});
      Batch batch = *reader.begin();
      if (world.rank == 1) batch.columns[1].second.as<int64_t>()[0] = 3;
      const auto before = exe.snapshot();
      const std::string said = world.rank == 1
                                   ? error_of<UserError>([&] { exe.run(batch).wait(); })
                                   : error_of<DeviceError>([&] { exe.run(batch).wait(); });
      const auto after = exe.snapshot();
      std::string changed;
      for (size_t i = 0; i < before.variables.size(); ++i) {
        if (before.variables[i].name == "rng") continue;  // it says where a rank's samples begin
        const Tensor &was = before.variables[i].value, &is = after.variables[i].value;
        for (int64_t k = 0; k < was.numel(); ++k) {
          if (was.at(k) != is.at(k)) changed = " it changed " + before.variables[i].name;
        }
      }
      return std::to_string(batch.size) + ": " + said + changed;
    });
    const std::string elsewhere =
        "another rank rejected its data and reports the error: no rank applied the step";
    EXPECT_EQ(ranks.result(0), "1: " + elsewhere);
    const std::string own = ranks.result(1);
    EXPECT_TRUE(own.starts_with("1: ") && own.ends_with("the step was not applied")) << own;
    EXPECT_EQ(ranks.result(2), "0: " + elsewhere);
  }
}

/// The whole command, which evaluates as well.
class EmptyGpuRankOfLaunch : public ParallelTest {
 protected:
  void SetUp() override {
    ParallelTest::SetUp();
    before_ = "export TMPDIR=" + dir_.path() + "; ";
    std::ofstream(dir_.file("label.fir")) << R"(program @label {
  %x = data "x" : f32[?, 1]
  %y = data "y" : i64[?]
  %w = param "w" {init = "xavier_uniform"} : f32[1, 2]
  %a = matmul(%x, %w) : f32[?, 2]
  %e = softmax_cross_entropy(%a, %y) : f32[?]
  %loss = mean(%e) : f32[]
  train(%loss) {optimizer = "sgd", lr = 0.001}
  output "loss" = %loss
}
)";
  }
  void write_rows(int last_label) const {
    std::ofstream rows(dir_.file("rows.csv"));
    rows << "c0,label\n";
    for (int row = 0; row < 13; ++row) {
      rows << row << "," << (row == 12 ? last_label : row % 2) << "\n";
    }
  }
  Result train_two(const std::string& place, const std::string& flags) const {
    const std::string gpus =
        "export FLUID_STAND_IN_DEVICES=2 FLUID_GPU_LIBRARY=" + std::string(kLibrary) + "; ";
    return run_command(before_ + gpus + kFluidrun + " launch --nproc 2 -- " + kFluidrun +
                       " train label.fir --data 'csv:rows.csv?label=label&classes=1&shuffle=0' "
                       "--batch 6 --epochs 2 --dtype f64 --place " +
                       place + " " + flags);
  }
};

TEST_F(EmptyGpuRankOfLaunch, TrainsAndEvaluates) {
  write_rows(0);
  const std::string flags = "--val 'csv:rows.csv?label=label&classes=1&limit=7' ";
  const auto best = [&](const std::string& place, const std::string& more) {
    const std::string log = place + ".json";
    std::filesystem::remove(dir_.file(log));
    const std::string output = train_two(place, flags + "--log-json " + log + more).output;
    const size_t at = output.find("best: val_loss ");
    EXPECT_NE(at, std::string::npos) << output;
    return output.substr(std::min(at, output.size()), output.find('\n', at) - at);
  };
  for (const std::string more : {"", " --zero 1 --micro-batches 2"}) {
    SCOPED_TRACE(more);
    EXPECT_EQ(best("cuda", more), best("cpu", more));
    expect_losses("cuda.json", "cpu.json");
  }
}

TEST_F(EmptyGpuRankOfLaunch, TheRankThatRejectsIsNamed) {
  write_rows(5);
  const Result result = train_two("cuda", "");
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_NE(result.output.find("value 5 of feed 'y' is out of range [0, 2)"), std::string::npos)
      << result.output;
}

}  // namespace
}  // namespace fluid::parallel_gpu_empty_test
