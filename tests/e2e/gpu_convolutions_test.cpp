// Whole programs whose convolutions go to the library of a GPU, for which the host stands in.
// Results are those of the CPU's generated kernels.

#include <gtest/gtest.h>

#include <cmath>

#include "executor/checkpoint/checkpoint.h"
#include "executor/executor.h"
#include "executor/gpu/gpu_device.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ops/operators.h"
#include "tests/support/count_of.h"
#include "tests/support/errors.h"
#include "tests/support/gpu_training.h"
#include "tests/support/host_gpu_test.h"
#include "tests/support/temp_dir.h"

namespace fluid::gpu_convolutions_test {
namespace {

using fluid::testing::count_of;
using fluid::testing::host_gpu_objects;
using fluid::testing::host_gpu_table;
using fluid::testing::HostPace;
using fluid::testing::worst_difference;

constexpr int64_t kSize = 8, kChannels = 16, kFilters = 32, kClasses = 8, kBatch8 = 8;
constexpr int64_t kWorkspace = 1 << 20;

/// Convolutions with and without a bias, and a shortcut around one.
Program residual_network() {
  Program net("residual");
  const Value x = net.data("x", {kBatch, kChannels, kSize, kSize}, f32);
  const Value label = net.data("label", {kBatch}, i64);
  Value h = conv2d(x, {.filters = kFilters, .kernel = 3, .padding = 1, .act = Act::relu});
  const Value around = h;
  h = conv2d(h, {.filters = kFilters, .kernel = 3, .padding = 1, .bias = false});
  h = relu(h + around);
  h = conv2d(h, {.filters = kFilters, .kernel = 3, .stride = 2, .act = Act::relu});
  const Value logits = linear(flatten(h), {.units = kClasses});
  const Value loss = mean(softmax_cross_entropy(logits, label));
  net.output("loss", loss);
  net.output("prob", softmax(logits));
  minimize(loss, Momentum{.lr = 0.02});
  return net;
}

Batch batch_of(int64_t n, int64_t first = 0) {
  Tensor x(f32, {n, kChannels, kSize, kSize}), label(i64, {n});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.as<float>()[static_cast<size_t>(i)] = std::sin(static_cast<float>(i + 17 * first) * 0.37f);
  }
  for (int64_t i = 0; i < n; ++i) {
    label.as<int64_t>()[static_cast<size_t>(i)] = (3 * i + first) % kClasses;
  }
  return {.size = n, .columns = {{"x", x}, {"label", label}}};
}

std::unique_ptr<Device> stand_in(const std::string& cache_dir = "", bool tune = true) {
  return testing::stand_in({.cache_dir = cache_dir, .libraries = {kWorkspace}, .tune = tune});
}

/// How far parameters and losses are from the CPU's after some steps.
double worst_after_training(ExecutorOptions options, int steps = 2) {
  Executor gpu(residual_network(), stand_in(), options);
  options.debug.libraries = false;
  Executor cpu(residual_network(), fluid::cpu(), options);
  std::vector<Batch> batches;
  for (int step = 0; step < steps; ++step) batches.push_back(batch_of(kBatch8, step));
  return worst_difference(cpu, gpu, batches);
}

class GpuConvolutions : public testing::HostGpuTest {
 protected:
  static std::string text_of(const ExecutorOptions& options) {
    return Executor(residual_network(), stand_in(), options).text(Mode::train, kBatch8);
  }
};

TEST_F(GpuConvolutions, TrainAsTheCpuDoesWheneverWorkIsDone) {
  const std::string text = text_of({.batch = kBatch8});
  EXPECT_EQ(count_of(text, "kernel = \"cudnn.conv2d\""), 3) << text;
  EXPECT_EQ(count_of(text, "kernel = \"cudnn.conv2d_grad_input\""), 2);
  EXPECT_EQ(count_of(text, "kernel = \"cudnn.conv2d_grad_filter\""), 3);
  EXPECT_EQ(text.find("nhwc"), std::string::npos) << "f32 stays plain";
  for (const HostPace pace : {HostPace::early, HostPace::late, HostPace::random}) {
    fluid::testing::reset_host_gpu({.pace = pace});
    EXPECT_LT(worst_after_training({.batch = kBatch8}), 2e-5);
  }
}

TEST_F(GpuConvolutions, TrainWithChannelsLastInHalves) {
  const AmpOptions o1{.dtype = bf16}, o2{.dtype = f16, .level = AmpLevel::o2};
  const std::string text = text_of({.batch = kBatch8, .precision = {.amp = o1}});
  EXPECT_EQ(count_of(text, "kernel = \"cudnn.conv2d"), 8) << text;
  EXPECT_GT(count_of(text, "{nhwc}"), 8) << text;
  EXPECT_LT(worst_after_training({.batch = kBatch8, .precision = {.amp = o1}}), 3e-2);
  EXPECT_LT(worst_after_training({.batch = kBatch8, .precision = {.amp = o2}}), 4e-3);
}

/// Gradients of micro-batches, and residual connections, are added in place.
TEST_F(GpuConvolutions, AddInPlace) {
  const ExecutorOptions options{.batch = kBatch8, .micro_batches = 2};
  const std::string text = text_of(options);
  EXPECT_GE(count_of(text, "in_place = 2, kernel = \"cudnn.conv2d_grad_filter\""), 3) << text;
  EXPECT_LT(worst_after_training(options), 2e-5);
}

TEST_F(GpuConvolutions, TakeBiasAndReluAlongWhereNothingIsTrained) {
  const Batch samples = batch_of(kBatch8);
  Executor gpu(residual_network(), stand_in()), cpu(residual_network(), fluid::cpu());
  gpu.prepare({.predict = {kBatch8}});
  cpu.prepare({.predict = {kBatch8}});
  EXPECT_LT(worst_difference(gpu.predict(samples)["prob"], cpu.predict(samples)["prob"]), 1e-6);
  const std::string text = gpu.text(Mode::predict, kBatch8);
  EXPECT_EQ(count_of(text, "kernel = \"cudnn.conv2d\""), 3) << text;
}

/// Convolution choices are stored with the matmul choices, on disk and in checkpoints.
TEST_F(GpuConvolutions, AreChosenOnce) {
  const TempDir dir;
  Executor first(residual_network(), stand_in(dir.path()), {.batch = kBatch8});
  first.run(batch_of(kBatch8));
  const auto decided = first.snapshot().tuning_record;
  EXPECT_GE(decided.size(), 8U);
  fluid::testing::fail_host_gpu("convolution_algorithms", fluid_gpu_failed);  // no further call
  Executor(residual_network(), stand_in(dir.path()), {.batch = kBatch8}).run(batch_of(kBatch8));
  const TempDir elsewhere;
  Executor resumed(residual_network(),
                   gpu_device(host_gpu_table(), {.cache_dir = elsewhere.path(),
                                                 .libraries = {kWorkspace},
                                                 .tuning_record = decided}),
                   {.batch = kBatch8});
  resumed.restore(first.snapshot());
  resumed.run(batch_of(kBatch8));
}

/// A candidate that the library cannot keep is withdrawn: code is generated for it.
TEST_F(GpuConvolutions, AreGeneratedWhereTheLibraryHasNoWay) {
  fluid::testing::reset_host_gpu({.most_filters = kFilters - 1});
  Executor gpu(residual_network(), stand_in(), {.batch = kBatch8});
  EXPECT_EQ(count_of(gpu.text(Mode::train, kBatch8), "cudnn."), 0);
  const auto refused = gpu.compile_report().library_rejections;
  ASSERT_FALSE(refused.empty());
  EXPECT_EQ(refused.front(),
            "cudnn.conv2d cannot compute f32 8 x 16 x 8 x 8 by 32 x 3 x 3 with a workspace of "
            "16.00 KiB: code is generated");
  EXPECT_LT(worst_after_training({.batch = kBatch8}), 2e-5);
}

TEST_F(GpuConvolutions, AreToldToFailWhileAStepIsPrepared) {
  for (const char* call : {"convolution_algorithms", "convolution_plan_create"}) {
    fluid::testing::reset_host_gpu({});
    fluid::testing::fail_host_gpu(call, fluid_gpu_failed, 3);
    EXPECT_TRUE(states(
        error_of<DeviceError>([] { Executor(residual_network(), stand_in(), {.batch = kBatch8}); }),
        std::string(call) + " was told to fail"));
    EXPECT_EQ(host_gpu_objects(), 0) << call;
  }
}

}  // namespace
}  // namespace fluid::gpu_convolutions_test
