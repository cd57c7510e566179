// Whole programs on the host that stands in for a GPU, which runs their PTX. Results are those of
// the CPU's generated kernels.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "codegen/object_cache.h"
#include "executor/executor.h"
#include "executor/gpu/gpu_device.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "tests/support/errors.h"
#include "tests/support/gpu_training.h"
#include "tests/support/host_gpu_test.h"
#include "tests/support/temp_dir.h"
#include "tests/support/training.h"

namespace fluid::gpu_session_test {
namespace {

using fluid::testing::batch_of;
using fluid::testing::host_gpu_table;
using fluid::testing::small_network;
using fluid::testing::stand_in;
using fluid::testing::state_of;

struct Pair {
  Executor cpu, gpu;

  explicit Pair(const Program& net, ExecutorOptions options = {})
      : cpu(net, fluid::cpu(), generated(options)), gpu(net, stand_in(), options) {}

  static ExecutorOptions generated(ExecutorOptions options) {
    options.debug.libraries = false;
    return options;
  }

  /// Both train on the same batches and have the same losses.
  void train(int64_t batch, int steps, double tolerance) {
    for (int step = 0; step < steps; ++step) {
      const Batch samples = batch_of(batch, step);
      const double expected = cpu.run(samples)["loss"].item();
      EXPECT_NEAR(gpu.run(samples)["loss"].item(), expected, tolerance) << "step " << step;
    }
  }
  void expect_equal_parameters(double tolerance) {
    for (const std::string& name : cpu.parameters()) {
      const Tensor expected = cpu.parameter(name), found = gpu.parameter(name);
      for (int64_t i = 0; i < expected.numel(); ++i) {
        ASSERT_NEAR(found.at(i), expected.at(i), tolerance) << name << "[" << i << "]";
      }
    }
  }
};

class GpuSession : public testing::HostGpuPaceTest {};

TEST_P(GpuSession, TrainsAsTheCpuDoes) {
  Pair both(small_network(), {});
  both.train(5, 4, 1e-5);
  both.train(3, 2, 1e-5);  // memory grows, variables move
  both.train(5, 1, 1e-5);
  both.expect_equal_parameters(2e-5);
}

TEST_P(GpuSession, EvaluatesAndPredictsAsTheCpuDoes) {
  Pair both(small_network(), {});
  both.train(4, 1, 1e-5);
  const Batch samples = batch_of(6, 9);
  const OutputViews expected = both.cpu.eval(samples), found = both.gpu.eval(samples);
  EXPECT_NEAR(found["loss"].item(), expected["loss"].item(), 1e-5);
  EXPECT_EQ(found.find("accuracy").statistics.at(0), expected.find("accuracy").statistics.at(0));
  const Tensor first = both.gpu.predict(samples)["prob"];
  both.gpu.predict(batch_of(6, 3));
  const Tensor prob = both.cpu.predict(samples)["prob"];
  for (int64_t i = 0; i < prob.numel(); ++i) EXPECT_NEAR(first.at(i), prob.at(i), 1e-5);
}

/// Momenta, running statistics, the counters of steps and of random numbers, the loss scale.
TEST_P(GpuSession, AStepOnBadDataChangesNothing) {
  for (const ExecutorOptions& options :
       {ExecutorOptions{.batch = 4}, ExecutorOptions{.batch = 4, .debug = {.fuse = false}},
        ExecutorOptions{.batch = 4, .precision = {.amp = AmpOptions{.dtype = f16}}},
        ExecutorOptions{.batch = 4, .micro_batches = 2}}) {
    Executor exe(small_network(), stand_in(), options);
    exe.run(batch_of(4));
    const std::vector<std::byte> before = state_of(exe);
    for (const size_t sample : {0, 3}) {
      Batch bad = batch_of(4, 1);
      bad.columns[1].second.as<int64_t>()[sample] = 3;
      expect_user_error([&] { exe.run(bad).wait(); }, "the step was not applied");
      EXPECT_EQ(state_of(exe), before);
    }
    exe.run(batch_of(4, 1));
    EXPECT_NE(state_of(exe), before);
  }
}

INSTANTIATE_TEST_SUITE_P(Pace, GpuSession, testing::kPaces, testing::name_of);
INSTANTIATE_TEST_SUITE_P(Long, GpuSession, ::testing::Values(testing::kEarly), testing::name_of);

constexpr int64_t kSmall = 64 << 10;  ///< error words outside arenas, one page each

class GpuPlace : public testing::HostGpuTest {};

TEST_F(GpuPlace, TrainsInMicroBatches) {
  Pair both(small_network(), {.micro_batches = 3});
  both.train(7, 3, 1e-5);
}

TEST_F(GpuPlace, TrainsInMixedPrecision) {
  for (const DType half : {bf16, f16}) {
    for (const AmpLevel level : {AmpLevel::o1, AmpLevel::o2}) {
      Pair both(small_network(), {.precision = {.amp = AmpOptions{.dtype = half, .level = level}}});
      both.train(4, 3, half == bf16 ? 2e-2 : 2e-3);
    }
  }
}

TEST_F(GpuPlace, SkipsAStepWhoseGradientsOverflow) {
  const AmpOptions amp{.dtype = f16, .loss_scale = {.initial = 16777216}};
  Pair both(small_network(), {.precision = {.amp = amp}});
  both.train(4, 6, 1e-2);
  EXPECT_GT(both.cpu.loss_scaling()->skipped, 0);
  EXPECT_EQ(both.gpu.loss_scaling()->skipped, both.cpu.loss_scaling()->skipped);
  EXPECT_EQ(both.gpu.loss_scaling()->scale, both.cpu.loss_scaling()->scale);
}

TEST_F(GpuPlace, CheckpointsMoveBetweenPlaces) {
  Pair both(small_network(), {});
  both.gpu.run(batch_of(4));
  both.cpu.run(batch_of(4));
  both.cpu.restore(both.gpu.snapshot(), "here");
  EXPECT_EQ(parameter_bytes(both.cpu), parameter_bytes(both.gpu));
  both.cpu.run(batch_of(4, 1));
  both.gpu.restore(both.cpu.snapshot(), "there");
  EXPECT_EQ(parameter_bytes(both.cpu), parameter_bytes(both.gpu));
  both.train(4, 2, 1e-5);
}

TEST_F(GpuPlace, FindsWhereAStepStoppedBeingFinite) {
  Pair both(small_network(false), {.debug = {.check_finite = true}});
  const Batch samples = batch_of(4);
  for (Executor* exe : {&both.cpu, &both.gpu}) {
    Tensor w = exe->parameter("fc0.w");
    std::ranges::fill(w.as<float>(), 3e38f);
    exe->set_parameter("fc0.w", w);
    exe->run(samples);
  }
  const std::string expected = both.cpu.first_nonfinite(samples);
  EXPECT_NE(expected.find("matmul of layer 'fc0'"), std::string::npos) << expected;
  EXPECT_EQ(both.gpu.first_nonfinite(samples), expected);
}

TEST_F(GpuPlace, AStepIsOverWhereNumbersAreChecked) {
  Executor exe(small_network(), stand_in(), {.batch = 4, .debug = {.check_finite = true}});
  exe.run(batch_of(4));
  Batch bad = batch_of(4, 1);
  bad.columns[1].second.as<int64_t>()[2] = 3;
  expect_user_error([&] { exe.run(bad); }, "the step was not applied");
  exe.run(batch_of(4, 1));
}

TEST_F(GpuPlace, ProfilesItsCalls) {
  Executor exe(small_network(), stand_in(), {.profile = ProfileOptions{.warm_up = 1, .steps = 2}});
  exe.run(batch_of(4, 0));
  fluid::testing::fail_host_gpu("launch", fluid_gpu_failed);  // steps are graphs, recorded ones too
  for (int step = 1; step < 3; ++step) exe.run(batch_of(4, step));
  const Profile profile = exe.profile();
  ASSERT_EQ(profile.steps.size(), 1U);
  ASSERT_EQ(profile.steps[0].times.size(), 2U);
  for (const CallTimes& call : profile.steps[0].times.back().runs.at(0).calls) {
    EXPECT_GT(call.call.ns(), 0);
    EXPECT_EQ(call.call.ns() % 15'625, 0) << "the GPU's clock counts work here";
  }
}

TEST_F(GpuPlace, TheMemoryTakenIsThatOfThePlan) {
  constexpr int64_t kMemory = 8 << 20;
  fluid::testing::reset_host_gpu({.memory = kMemory});
  Executor cpu(small_network(), fluid::cpu(), {.batch = 4, .debug = {.libraries = false}});
  Executor gpu(small_network(), stand_in(), {.batch = 4, .gpu = {.prefetch = false}});
  EXPECT_EQ(gpu.memory().state, cpu.memory().state);
  EXPECT_EQ(gpu.memory().slots, cpu.memory().slots);
}

/// Its arena makes way for the larger one: there is not room for both.
TEST_F(GpuPlace, GrowsInTheMemoryThatItHas) {
  const int64_t needed = Executor(small_network(), stand_in(), {.batch = 64}).memory().total;
  fluid::testing::reset_host_gpu({.memory = needed + kSmall});
  Pair both(small_network(), {});
  both.train(48, 2, 1e-5);
  const OutputViews before = both.gpu.run(batch_of(48, 2));
  both.cpu.run(batch_of(48, 2));
  const Batch more = batch_of(64, 3);
  EXPECT_NEAR(both.gpu.run(more)["loss"].item(), both.cpu.run(more)["loss"].item(), 1e-5);
  EXPECT_TRUE(std::isfinite(before["loss"].item())) << "of the step before";
  both.train(48, 1, 1e-5);
  both.expect_equal_parameters(2e-5);
}

/// The graphs that were recorded for the smaller one are gone before it is, and count no more.
TEST_F(GpuPlace, GraphsGoBeforeTheMemoryThatTheyReferTo) {
  constexpr int64_t kObject = 1000;
  fluid::testing::reset_host_gpu({.object_bytes = kObject});
  Executor exe(small_network(), stand_in(), {.batch = 2, .profile = ProfileOptions{}});
  const auto graphs = [&] {
    const auto owners = exe.memory().memory_outside_arenas;
    return std::ranges::find(owners, "graphs", &std::pair<std::string, int64_t>::first)->second;
  };
  constexpr int64_t kEach = 4 * kObject;
  EXPECT_EQ(graphs(), 3 * kEach) << "of the start and of training, which is timed, too";
  const int64_t before = exe.memory().total;
  for (const int64_t more : {16, 32}) exe.prepare({.train = {more}});
  EXPECT_GT(exe.memory().total, before);
  EXPECT_EQ(graphs(), 7 * kEach);
  exe.run(batch_of(32));
}

TEST_F(GpuPlace, IsAsBeforeWhereItCannotGrow) {
  const int64_t needed = Executor(small_network(), stand_in(), {.batch = 48}).memory().total;
  fluid::testing::reset_host_gpu({.memory = needed + kSmall});
  Pair both(small_network(), {});
  both.train(48, 2, 1e-5);
  for (int again = 0; again < 2; ++again) {
    const std::string why = error_of<DeviceError>([&] { both.gpu.run(batch_of(128)); });
    EXPECT_TRUE(states(why, "the GPU has no ")) << why;
    both.train(48, 2, 1e-5);
  }
  both.expect_equal_parameters(2e-5);
}

/// Not even the memory that it had is there any more.
TEST_F(GpuPlace, IsGivenUpWhereItsMemoryIsLost) {
  const int64_t needed = Executor(small_network(), stand_in(), {.batch = 48}).memory().total;
  fluid::testing::reset_host_gpu({.memory = needed + kSmall});
  Executor exe(small_network(), stand_in(), {});
  exe.run(batch_of(48));
  constexpr int kCallsBefore = 3;  // error words, rejection flag and the larger arena
  fluid::testing::fail_host_gpu("allocate", fluid_gpu_out_of_memory, kCallsBefore);
  const std::string why = error_of<DeviceError>([&] { exe.run(batch_of(128)); });
  EXPECT_TRUE(
      why.ends_with("; the contents of GPU memory are lost: restart, or resume from a checkpoint"))
      << why;
  EXPECT_EQ(error_of<DeviceError>([&] { exe.run(batch_of(48)); }), why);
  EXPECT_EQ(error_of<DeviceError>([&] { exe.parameter("fc0.w"); }), why);
}

TEST_F(GpuPlace, OutOfMemoryComesBeforeTheFirstStep) {
  fluid::testing::reset_host_gpu({.memory = 8 << 10});
  const std::string why =
      error_of<DeviceError>([] { Executor(small_network(), stand_in(), {.batch = 64}); });
  EXPECT_TRUE(states(why, "KiB are free; take a smaller batch, micro-batches or mixed precision"))
      << why;
}

/// A step is one graph, even if kernels may reject labels: the host reads the rejection flag only
/// at the end.
TEST_F(GpuPlace, AStepIsOneGraph) {
  Executor exe(small_network(), stand_in(), {.batch = 4});
  fluid::testing::fail_host_gpu("graph_launch", fluid_gpu_failed, 3);
  for (int step = 0; step < 3; ++step) exe.run(batch_of(4, step));
  EXPECT_THROW(exe.run(batch_of(4)), DeviceError);
}

/// One for training and one to start with: whatever is made of one program at once is one module.
TEST_F(GpuPlace, AProgramIsOneModule) {
  fluid::testing::fail_host_gpu("module_load", fluid_gpu_failed, 2);
  Executor exe(small_network(), stand_in(), {.batch = 4});
  exe.prepare({.train = {3}});  // the same kernels
  EXPECT_THROW(exe.prepare({.predict = {4}}), DeviceError);
}

TEST_F(GpuPlace, MachineCodeIsKeptOnDisk) {
  unsetenv("FLUID_KERNEL_CACHE");
  const TempDir dir;
  const auto report = [&](int64_t assembler) {
    fluid::testing::reset_host_gpu({.assembler = assembler});
    Executor exe(small_network(), gpu_device(host_gpu_table(), {.cache_dir = dir.path()}),
                 {.batch = 4});
    const double loss = exe.run(batch_of(4))["loss"].item();
    return std::pair(exe.compile_report(), loss);
  };
  const auto [first, loss] = report(13000);
  EXPECT_GT(first.kernels, 5);
  EXPECT_EQ(first.cache_hits, 0);
  const auto [second, same_loss] = report(13000);
  EXPECT_EQ(second.kernels, 0);
  EXPECT_EQ(second.cache_hits, first.kernels);
  EXPECT_EQ(same_loss, loss);
  EXPECT_EQ(report(13010).first.cache_hits, 0) << "another assembler makes other code";
  std::vector<std::filesystem::path> entries;
  for (const auto& file : std::filesystem::directory_iterator(dir.path())) {
    if (file.path().extension() == ".o") entries.push_back(file.path());
  }
  for (const auto& entry : entries) {
    std::filesystem::resize_file(entry, std::filesystem::file_size(entry) - 1);
  }
  const auto [third, third_loss] = report(13000);
  EXPECT_EQ(third.kernels, first.kernels) << "what is damaged is made again";
  const ObjectCache cache(dir.path(), 1 << 30);
  for (const auto& entry : entries) {
    cache.store(entry.stem().string(), "whole, but the code of something else");
  }
  EXPECT_EQ(report(13000).first.kernels, first.kernels) << "what cannot be loaded is made again";
  EXPECT_EQ(report(13000).first.cache_hits, first.kernels) << "and kept";
  EXPECT_EQ(third_loss, loss);
}

TEST_F(GpuPlace, AFailedLaunchIsToldAndNothingIsLeftOpen) {
  Executor exe(small_network(), stand_in(), {.batch = 4});
  fluid::testing::fail_host_gpu("graph_launch", fluid_gpu_failed);
  EXPECT_TRUE(states(error_of<DeviceError>([&] { exe.run(batch_of(4)); }),
                     "graph_launch was told to fail"));
  EXPECT_THROW(exe.run(batch_of(4)), DeviceError);
}

TEST_F(GpuPlace, RejectsBatchesThatItsIndicesDoNotCount) {
  Program net("large");
  const Value x = net.data("x", {kBatch, 65536}, bf16);
  net.output("mean", mean(x));
  const ExecutorOptions options{.batch = 40'000, .memory_limit = int64_t{1} << 40};
  expect_user_error([&] { Executor(net, stand_in(), options); },
                    "a batch of 40000 samples: GPU kernels take at most 32767 here; use a smaller "
                    "batch or micro-batches");
}

TEST_F(GpuPlace, RejectsWhatItCannotDoYet) {
  const Program net = small_network();
  expect_user_error(
      [&] { Executor(net, stand_in(), {.batch = 4, .debug = {.verify_plan = true}}); },
      "plans are verified on the CPU only: omit --place");
  expect_user_error([&] { Executor(net, stand_in(), {.distributed = {.world = {.size = 2}}}); },
                    "several processes and choose_amp need a place that Fluid knows by name");
}

}  // namespace
}  // namespace fluid::gpu_session_test
