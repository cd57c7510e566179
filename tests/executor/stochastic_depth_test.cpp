// Stochastic depth drops residual branches as torchvision.ops.StochasticDepth does.

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "frontend/fluid.h"
#include "tests/support/errors.h"

namespace fluid::stochastic_depth_test {
namespace {

using Mode = StochasticDepth::Mode;

/// The output is the branch, and the gradient of w is the mean of its factors.
Program program_with(double p, Mode mode) {
  Program net("branch");
  const Value x = net.data("x", {kBatch, 3}, f32);
  const Value w = net.parameter("w", {3}, Init::constant(1));
  const Value y = stochastic_depth(x * w, {.p = p, .mode = mode});
  const Value loss = mean(y);
  net.output("y", y);
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 1});
  return net;
}

Batch ones(int64_t samples) {
  Tensor x(f32, {samples, 3});
  for (float& v : x.as<float>()) v = 1;
  return {samples, {{"x", x}}, 0};
}

/// The factor of each sample, which all its elements share.
std::vector<double> factors(Executor& exe, int64_t samples) {
  const auto outputs = exe.run(ones(samples));
  const Tensor y = outputs["y"].copy();
  std::vector<double> all;
  for (int64_t i = 0; i < samples; ++i) {
    all.push_back(y.at(3 * i));
    EXPECT_EQ(y.at(3 * i + 1), y.at(3 * i));
    EXPECT_EQ(y.at(3 * i + 2), y.at(3 * i));
  }
  return all;
}

TEST(StochasticDepth, DropsSamplesIndependently) {
  constexpr int64_t kSamples = 2000;
  Executor exe(program_with(0.25, Mode::row), cpu());
  double kept = 0;
  for (const double f : factors(exe, kSamples)) {
    EXPECT_TRUE(f == 0 || std::abs(f - 1 / 0.75) < 1e-6) << f;
    kept += f != 0 ? 1 : 0;
  }
  const double share = kept / kSamples;
  EXPECT_NEAR(share, 0.75, 4 * std::sqrt(0.75 * 0.25 / kSamples));
  EXPECT_NEAR(exe.parameter("w").at(0), 1 - share / 0.75 / 3, 1e-5) << "the gradient is dropped";
}

TEST(StochasticDepth, DropsWholeBatches) {
  Executor exe(program_with(0.5, Mode::batch), cpu());
  std::set<bool> seen;
  for (int step = 0; step < 40; ++step) {
    const std::vector<double> all = factors(exe, 4);
    for (const double f : all) EXPECT_EQ(f != 0, all[0] != 0);
    seen.insert(all[0] != 0);
  }
  EXPECT_EQ(seen.size(), 2u) << "both outcomes within 40 steps";
}

TEST(StochasticDepth, DropsTheSameSamplesInMicroBatches) {
  Executor whole(program_with(0.5, Mode::row), cpu());
  Executor parts(program_with(0.5, Mode::row), cpu(), {.micro_batches = 4});
  for (int step = 0; step < 3; ++step) {
    whole.run(ones(8));
    parts.run(ones(8));
    EXPECT_NEAR(whole.parameter("w").at(0), parts.parameter("w").at(0), 1e-5);
  }
}

TEST(StochasticDepth, HasNoEffectOnPredictions) {
  Executor exe(program_with(0.5, Mode::row), cpu());
  const auto outputs = exe.predict(ones(6));
  for (int64_t i = 0; i < 18; ++i) EXPECT_EQ(outputs["y"].at(i), 1);
}

TEST(StochasticDepth, RejectsScalarsAndWrongProbabilities) {
  Program net("wrong");
  const Value x = net.data("x", {kBatch, 3}, f32);
  expect_user_error([&] { stochastic_depth(mean(x), {}); },
                    "stochastic_depth: x is a scalar, not [N, ...]");
  expect_user_error([&] { stochastic_depth(x, {.p = 1.5}); },
                    "attribute 'p' must lie between 0 and 1");
}

}  // namespace
}  // namespace fluid::stochastic_depth_test
