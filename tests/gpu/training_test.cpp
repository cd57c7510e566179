// Whole programs on a GPU beside the same on the CPU.

#include "tests/support/training.h"

#include <algorithm>
#include <cmath>

#include "frontend/fluid.h"
#include "tests/gpu/gpu_test.h"
#include "tests/support/temp_dir.h"

namespace fluid::training_test {
namespace {

struct Work {
  std::string name;
  std::function<Program()> record;
  int64_t batch;  ///< on a GPU
  int64_t stand_in_batch;
  std::function<Batch(uint64_t step, int64_t n)> data;
};

void PrintTo(const Work& work, std::ostream* out) { *out << work.name; }

template <class Optimizer>
Program minimized(Program net, Optimizer optimizer) {
  minimize(net.ir().main().outputs[0].value, optimizer);
  return net;
}

/// A recurrent network whose elements are no multiples of 16 bytes.
Program recurrent_program() {
  Program net("recurrent");
  const Value x = net.data("x", {kBatch, 4, 3}, f32);
  const Recurrent layer{.units = 5, .layers = 2, .bidirectional = true};
  const Value loss = mean(square(lstm(gru(x, layer).output, layer).output - 0.5));
  net.output("loss", loss);
  return net;
}

Batch recurrent_batch(uint64_t step, int64_t n) {
  Tensor x(f32, {n, 4, 3});
  double v = 0.1 + 0.01 * static_cast<double>(step);
  for (float& e : x.as<float>()) e = static_cast<float>(v = std::fmod(v * 7.3, 2.0) - 0.7);
  return {.size = n, .columns = {{"x", x}}, .id = 1};
}

/// A table of which a step reads some rows, and some of them twice.
Program sparse_program() {
  Program net("sparse");
  const Value index = net.data("index", {kBatch, 3}, i64);
  const Value rows = embedding(index, {.rows = 37, .units = 5, .sparse = true});
  const Value loss = mean(square(linear(rows, {.units = 3}) - 0.5));
  net.output("loss", loss);
  return net;
}

Batch sparse_batch(uint64_t step, int64_t n) {
  Tensor index(i64, {n, 3});
  auto v = static_cast<int64_t>(step);
  for (int64_t& e : index.as<int64_t>()) e = v = (v * 13 + 7) % 37;
  return {.size = n, .columns = {{"index", index}}, .id = 1};
}

/// The last takes part in every run of the tests, the others in full ones.
std::vector<Work> works() {
  const auto line = [](uint64_t, int64_t n) { return linear_batch(n); };
  return {
      {"linear_regression", [] { return linear_regression_program(); }, 10'000, 64, line},
      {"mnist_fluid", [] { return minimized(mnist_fluid_program(), SGD{.lr = 0.05}); }, 100, 2,
       golden_images},
      {"recurrent", [] { return minimized(recurrent_program(), Adam{.lr = 0.01}); }, 64, 2,
       recurrent_batch},
      {"sparse", [] { return minimized(sparse_program(), Adam{.lr = 0.01}); }, 64, 4, sparse_batch},
      {"mnist_cnn", [] { return minimized(mnist_cnn_program(0.1), Adam{.lr = 0.002}); }, 64, 2,
       golden_images}};
}

class GpuTraining : public GpuTest, public ::testing::WithParamInterface<Work> {
 protected:
  static int64_t batch() { return scaled(GetParam().batch, GetParam().stand_in_batch); }
  static int steps() { return scaled(50, 2); }

  static Executor executor(Place place, ExecutorOptions options) {
    options.batch = batch();
    const Program net = GetParam().record();
    Executor exe(net, place, options);
    set_golden_parameters(exe, net);
    return exe;
  }
  static double step(Executor& exe, int number) {
    return exe.run(GetParam().data(static_cast<uint64_t>(number), batch()))["loss"].item();
  }
  /// The losses of training from golden parameters on.
  static std::vector<double> losses(Place place, const ExecutorOptions& options, int steps) {
    Executor exe = executor(place, options);
    std::vector<double> all;
    for (int i = 0; i < steps; ++i) all.push_back(step(exe, i));
    return all;
  }
  static void expect_repeats(const ExecutorOptions& options) {
    std::vector<std::vector<std::byte>> runs;
    std::vector<std::map<std::string, std::string>> decisions;
    for (int run = 0; run < 2; ++run) {
      Executor exe = executor(cuda(0), options);
      for (int i = 0; i < scaled(20, 1); ++i) step(exe, i);
      runs.push_back(parameter_bytes(exe));
      decisions.push_back(exe.snapshot().tuning_record);
    }
    EXPECT_EQ(runs[0], runs[1]);
    EXPECT_EQ(decisions[0], decisions[1]);
  }
};

TEST_P(GpuTraining, FollowsTheCpuInF64) {
  const ExecutorOptions options{.precision = {.dtype = f64}};
  const std::vector<double> expected = losses(cpu(), options, steps());
  const std::vector<double> found = losses(cuda(0), options, steps());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-9 * std::fabs(expected[i])) << "step " << i;
  }
}

struct Drift {
  double times;  ///< allowed multiple of the CPU's error
  double least;  ///< error that is always allowed, relative to the loss
};

/// Expects that the GPU's losses differ from f64 at most by `drift.times` times the CPU's error in
/// the same precision, or by `drift.least`. Rounding errors grow with the steps, differently on
/// each place: if the CPU computes in another order (two micro-batches), its error is 2.9 times as
/// large in f32, and 1.8 times in half precision. A run that learns nothing must differ by more
/// than twice the allowed error.
void expect_drift_of(const std::vector<double>& expected, const std::vector<double>& found,
                     const std::vector<double>& exact, const Drift& drift,
                     const std::string& what) {
  double allowed = drift.least, without_learning = 0;  // how many times what is allowed
  for (size_t i = 0; i < exact.size(); ++i) {
    const double size = std::fabs(exact[i]);
    allowed = std::max(allowed, drift.times * std::fabs(expected[i] - exact[i]) / size);
    EXPECT_NEAR(found[i], exact[i], allowed * size) << what << ", step " << i;
    without_learning = std::max(without_learning, std::fabs(exact[0] - exact[i]) / size / allowed);
  }
  const bool few = exact.size() <= 2;  // in which hardly anything is learnt
  EXPECT_TRUE(few || without_learning > 2) << what << ": " << without_learning;
}

TEST_P(GpuTraining, FollowsTheCpuInF32) {
  const std::vector<double> exact = losses(cpu(), {.precision = {.dtype = f64}}, steps());
  expect_drift_of(losses(cpu(), {}, steps()), losses(cuda(0), {}, steps()), exact, {10, 4e-5},
                  "f32");
}

TEST_P(GpuTraining, FollowsTheCpuInMixedPrecision) {
  std::vector<AmpOptions> modes = {{.dtype = bf16, .level = AmpLevel::o1},
                                   {.dtype = f16, .level = AmpLevel::o2},
                                   {.dtype = bf16, .level = AmpLevel::o2},
                                   {.dtype = f16, .level = AmpLevel::o1}};
  modes.resize(scaled<size_t>(modes.size(), 2));
  const int some = scaled(50, 1);
  const std::vector<double> exact = losses(cpu(), {.precision = {.dtype = f64}}, some);
  for (const AmpOptions& amp : modes) {
    expect_drift_of(losses(cpu(), {.precision = {.amp = amp}}, some),
                    losses(cuda(0), {.precision = {.amp = amp}}, some), exact,
                    {4, amp.dtype == bf16 ? 0x1p-6 : 0x1p-9},
                    std::string(name_of(amp.dtype)) + (amp.level == AmpLevel::o1 ? " o1" : " o2"));
  }
}

/// Twice the same bits, whatever ran when.
TEST_P(GpuTraining, RepeatsBitForBit) { expect_repeats({}); }

/// The first run times the ways of libraries, the second takes what was chosen.
TEST_P(GpuTraining, RepeatsBitForBitAfterTiming) {
  if (is_short_run()) GTEST_SKIP() << "see RepeatsBitForBitAfterTimingInBf16";
  const TempDir cache;
  expect_repeats({.cache_dir = cache.path()});
}
TEST_P(GpuTraining, RepeatsBitForBitAfterTimingInBf16) {
  const TempDir cache;
  expect_repeats({.cache_dir = cache.path(),
                  .precision = {.amp = AmpOptions{.dtype = bf16, .level = AmpLevel::o1}}});
}

TEST_P(GpuTraining, RepeatsBitForBitAfterTimingInF16) {
  if (is_short_run()) GTEST_SKIP() << "see RepeatsBitForBitAfterTimingInBf16";
  const TempDir cache;
  expect_repeats({.cache_dir = cache.path(),
                  .precision = {.amp = AmpOptions{.dtype = f16, .level = AmpLevel::o2}}});
}

std::string work_name(const ::testing::TestParamInfo<Work>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Examples, GpuTraining, ::testing::Values(works().back()), work_name);
INSTANTIATE_TEST_SUITE_P(Long, GpuTraining,
                         ::testing::Values(works()[0], works()[1], works()[2], works()[3]),
                         work_name);

using GpuMemoryUse = GpuTest;

/// The GPU's free memory decreases by the planned arena and little else.
TEST_F(GpuMemoryUse, IsThatOfThePlan) {
  if (is_stand_in()) GTEST_SKIP() << "a host's memory is not this process's alone";
  const Program net = minimized(mnist_cnn_program(0.1), Adam{});
  const auto executor = [&] { return Executor(net, cuda(0), {.batch = 1024}); };
  const auto free_now = [] { return describe_gpu(gpu_backend(), 0).free_memory; };
  executor();  // the driver keeps the memory that it once allocated
  const int64_t before = free_now();
  const Executor exe = executor();
  const int64_t taken = before - free_now(), arena = exe.memory().total;
  RecordProperty("arena_bytes", std::to_string(arena));
  RecordProperty("taken_bytes", std::to_string(taken));
  EXPECT_GE(taken, arena - (2 << 20));
  EXPECT_LE(taken, arena + (64 << 20)) << "code and graphs are not that large";
}

/// By one rank, which has a communicator, too.
TEST_F(GpuMemoryUse, OutsideTheArenaIsListed) {
  const Program net = minimized(mnist_cnn_program(0.1), Adam{});
  const Executor exe(net, cuda(0),
                     {.batch = scaled(1024, 2), .distributed = {.force_collectives = true}});
  const MemoryUse use = exe.memory();
  std::set<std::string> owners;
  for (const auto& [owner, bytes] : use.memory_outside_arenas) {
    owners.insert(owner);
    RecordProperty("outside: " + owner, std::to_string(bytes));
    EXPECT_TRUE(owner != "streams, rounding" || std::abs(bytes) <= 16 << 20) << bytes;
  }
  RecordProperty("pinned on the host", std::to_string(use.pinned_bytes));
  EXPECT_EQ(owners,
            (std::set<std::string>{"code of kernels", "communicator", "context and other processes",
                                   "graphs", "libraries", "streams, rounding"}));
  EXPECT_GE(use.pinned_bytes, use.slots);
}

}  // namespace
}  // namespace fluid::training_test
