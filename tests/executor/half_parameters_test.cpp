// Mixed precision O2: parameters are kept in half besides their f32 masters.

#include <gtest/gtest.h>

#include <cmath>

#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ops/operators.h"
#include "passes/half_weights.h"
#include "passes/loss_scale.h"
#include "tests/support/temp_dir.h"
#include "tests/support/training.h"

namespace fluid::half_parameters_test {
namespace {

constexpr int64_t kSamples = 16;

AmpOptions amp_of(AmpLevel level, DType half) { return {.dtype = half, .level = level}; }

/// Weights alone, and sums of many terms: a cast that is fused into the op that reads it does not
/// round, so O1 then computes something else. One weight is read in f32 too.
Program network() {
  Program net("net");
  const Value x = net.data("x", {kBatch, 1, 6, 6}, f32);
  const Value h =
      batch_norm(conv2d(x, {.filters = 3, .kernel = 3, .bias = false, .act = Act::relu}));
  const Value hidden = linear(flatten(h), {.units = 16, .bias = false, .act = Act::tanh});
  const Value y = linear(hidden, {.units = 12, .bias = false});
  const Value shared = net.ir().main().find("param", "fc1.w")->result();
  net.output("y", y);
  const Value loss = mean(square(y)) + mean(exp(shared));
  net.output("loss", loss);
  minimize(loss, Adam{.lr = 0.02});
  return net;
}

Batch batch_of(int step, bool overflows = false) {
  Tensor x(f32, {kSamples, 1, 6, 6});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.as<float>()[static_cast<size_t>(i)] = static_cast<float>(std::sin(1.7 * double(i + step)));
  }
  if (overflows) x.as<float>()[7] = 1e6F;
  return {kSamples, {{"x", x}}, 0};
}

std::vector<double> numbers(const Tensor& t) {
  std::vector<double> all;
  for (int64_t i = 0; i < t.numel(); ++i) all.push_back(t.at(i));
  return all;
}

/// Expects the copies to be the masters, rounded.
void expect_copies(Executor& exe, DType half) {
  for (const std::string name : {"conv0.w", "fc0.w", "fc1.w"}) {
    const Tensor copy = exe.parameter(half_weight_name(name));
    EXPECT_EQ(copy.dtype(), half);
    EXPECT_EQ(numbers(copy), numbers(exe.parameter(name).cast(half))) << name;
  }
}

void expect_o1(DType half, const ExecutorOptions& common) {
  const Program net = network();
  ExecutorOptions options = common;
  options.precision.amp = amp_of(AmpLevel::o1, half);
  Executor o1(net, cpu(), options);
  options.precision.amp = amp_of(AmpLevel::o2, half);
  Executor o2(net, cpu(), options);
  EXPECT_EQ(o2.parameters().size(), o1.parameters().size());
  expect_copies(o2, half);
  for (int step = 0; step < 4; ++step) {
    const Batch batch = batch_of(step);
    EXPECT_EQ(o2.run(batch)["loss"].item(), o1.run(batch)["loss"].item()) << step;
    expect_copies(o2, half);
  }
  for (const std::string& name : o1.parameters()) {
    EXPECT_EQ(numbers(o2.parameter(name)), numbers(o1.parameter(name))) << name;
  }
  const Batch batch = batch_of(9);
  for (const bool predicts : {false, true}) {
    const auto y = [&](Executor& exe) {
      exe.prepare({.eval = {kSamples}, .predict = {kSamples}});
      return numbers((predicts ? exe.predict(batch) : exe.eval(batch))["y"]);
    };
    EXPECT_EQ(y(o2), y(o1));
  }
}

TEST(HalfParameters, TrainAsCastOnesDoInBf16) { expect_o1(bf16, {.batch = kSamples}); }
TEST(HalfParameters, TrainAsCastOnesDoInF16) { expect_o1(f16, {.batch = kSamples}); }
TEST(HalfParameters, TrainAsCastOnesDoInMicroBatches) {
  expect_o1(bf16, {.batch = kSamples, .micro_batches = 3});
}

TEST(HalfParameters, StayInASkippedStep) {
  const Program net = network();
  Executor exe(net, cpu(), {.batch = kSamples, .precision = {.amp = amp_of(AmpLevel::o2, f16)}});
  exe.run(batch_of(0));
  const Tensor master = exe.parameter("fc0.w"), copy = exe.parameter("fc0.w.half");
  exe.run(batch_of(1, /*overflows=*/true));
  EXPECT_EQ(exe.parameter(kSkippedSteps).item(), 1);
  EXPECT_EQ(numbers(exe.parameter("fc0.w")), numbers(master));
  EXPECT_EQ(numbers(exe.parameter("fc0.w.half")), numbers(copy));
  exe.run(batch_of(2));
  EXPECT_NE(numbers(exe.parameter("fc0.w.half")), numbers(copy));
}

TEST(HalfParameters, FollowWhatIsLoadedAndAreNotSaved) {
  const TempDir dir;
  const Program net = network();
  Executor trained(net, cpu(),
                   {.batch = kSamples, .precision = {.amp = amp_of(AmpLevel::o2, bf16)}});
  trained.run(batch_of(0));
  trained.save(dir.file("w.safetensors"));
  Executor loaded(net, cpu(), {.seed = 1, .precision = {.amp = amp_of(AmpLevel::o2, bf16)}});
  loaded.load(dir.file("w.safetensors"));  // before there are copies
  loaded.prepare({.eval = {kSamples}});
  expect_copies(loaded, bf16);
  Executor late(net, cpu(),
                {.batch = kSamples, .seed = 1, .precision = {.amp = amp_of(AmpLevel::o2, bf16)}});
  late.load(dir.file("w.safetensors"));
  expect_copies(late, bf16);
  Executor plain(net, cpu(), {.seed = 1, .precision = {.amp = amp_of(AmpLevel::o1, bf16)}});
  plain.load(dir.file("w.safetensors"));  // would reject parameters that it does not have
  plain.prepare({.eval = {kSamples}});
  const Batch batch = batch_of(3);
  EXPECT_EQ(numbers(loaded.eval(batch)["y"]), numbers(plain.eval(batch)["y"]));
}

}  // namespace
}  // namespace fluid::half_parameters_test
