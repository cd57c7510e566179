// Gradients that training steps keep, against the formula of a linear regression.

#include "frontend/named_values.h"

#include <gtest/gtest.h>

#include "executor/executor.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "frontend/scan.h"
#include "ops/operators.h"
#include "tests/support/errors.h"

namespace fluid::named_values_test {
namespace {

const std::vector<float> kX = {1, 2, -1, 0.5, 3, 1, 0, -2}, kY = {1, 0, 2, -1};

/// The loss is the mean of (x w - y)^2, with w = (0.5, -1).
Program regression(const MinimizeOptions& options = {}) {
  Program net("regression");
  const Value x = net.data("x", {kBatch, 2}, f32), y = net.data("y", {kBatch, 1}, f32);
  const Value w = net.parameter("w", {2, 1}, Init::zeros());
  const Value b = net.parameter("b", {1}, Init::zeros(), {.trainable = false});
  const Value loss = mean(square(matmul(x, w) + b - y));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.25}, options);
  retain_gradient(net, "w");
  return net;
}

/// d loss / d w[j] = 2 / N sum_i x[i, j] (x[i] w - y[i]).
void expect_gradient(const Program& net, const ExecutorOptions& options, double tolerance) {
  Executor exe(net, cpu(), options);
  exe.set_parameter("w", Tensor::of<float>({2, 1}, std::vector<float>{0.5, -1}));
  exe.run(Feeds{{"x", Tensor::of<float>({4, 2}, kX)}, {"y", Tensor::of<float>({4, 1}, kY)}});
  for (size_t j = 0; j < 2; ++j) {
    double expected = 0;
    for (size_t i = 0; i < 4; ++i) {
      const double error = 0.5 * kX[2 * i] - kX[2 * i + 1] - kY[i];
      expected += 0.5 * kX[2 * i + j] * error;
    }
    EXPECT_NEAR(exe.parameter("w.gradient").at(static_cast<int64_t>(j)), expected, tolerance) << j;
  }
  for (const SnapshotVariable& v : exe.snapshot().variables) EXPECT_NE(v.name, "w.gradient");
}

TEST(KeptValues, AreTheGradientsOfTheWholeBatch) {
  expect_gradient(regression(), {.batch = 4}, 1e-6);
  expect_gradient(regression(), {.batch = 4, .micro_batches = 2}, 1e-6);
  expect_gradient(regression({.clip = {.global_norm = 0.01}}), {.batch = 4}, 1e-6);
  ExecutorOptions sharded{.batch = 4};
  sharded.distributed.zero = 1;
  sharded.distributed.force_collectives = true;
  expect_gradient(regression(), sharded, 1e-6);
  ExecutorOptions f16_steps{.batch = 4};
  f16_steps.precision.amp = AmpOptions{.dtype = f16, .loss_scale = {.initial = 1024}};
  expect_gradient(regression(), f16_steps, 1e-2);
}

TEST(KeptValues, NeedAParameterThatTrains) {
  Program net = regression();
  expect_user_error([&] { retain_gradient(net, "v"); }, "no parameter 'v'");
  expect_user_error([&] { retain_gradient(net, "b"); }, "parameter 'b' is frozen or sparse");
}

TEST(KeptValues, AreNamedAfterLayersAndTheLayersAroundThem) {
  Program net("recurrence");
  const Value x = net.data("x", {kBatch, 2}, f32);
  const Scope encoder(net, "encoder"), block(net, "block0");
  const Value h = linear(x, {.units = 3});
  const auto step = [](const Values& carries, const Values&) {
    return ScanStep{{linear(carries[0], {.units = 3, .name = "cell"})}};
  };
  net.output("h", scan({h}, {}, step, {.steps = 2}).carries[0]);
  const std::vector<std::string> names = value_names(net);
  EXPECT_EQ(names, (std::vector<std::string>{"encoder", "encoder.block0", "encoder.block0.fc0"}));
  for (const std::string& name : names) EXPECT_TRUE(named_value(net, name)) << name;
  EXPECT_TRUE(is_value_of_scan_step(net, "encoder.block0.cell"));
  EXPECT_FALSE(named_value(net, "encoder.block0.cell"));
  EXPECT_FALSE(is_value_of_scan_step(net, "encoder.block0.fc0"));
}

}  // namespace
}  // namespace fluid::named_values_test
