// Training in f16: the loss is scaled, and steps whose gradients overflow are skipped.

#include "passes/loss_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ops/operators.h"
#include "tests/support/training.h"

namespace fluid {
namespace {

constexpr int64_t kSamples = 8;

AmpOptions f16_with(const LossScale& scale) { return {.dtype = f16, .loss_scale = scale}; }

/// With everything that a step writes: moments, running statistics, counters, dropout.
template <class Optimizer = Adam>
Program stateful_program(const Optimizer& optimizer = {.lr = 0.01}) {
  Program net("stateful");
  const Value x = net.data("x", {kBatch, 6}, f32);
  const Value y = dropout(batch_norm(linear(x, {.units = 4})), {.p = 0.25});
  const Value loss = mean(square(linear(y, {.units = 1})));
  net.output("loss", loss);
  minimize(loss, optimizer);
  return net;
}

/// Numbers that f16 holds, or with one that it does not.
Batch batch_of(bool overflows) {
  Tensor x(f32, {kSamples, 6});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.as<float>()[static_cast<size_t>(i)] = static_cast<float>(std::sin(3.0 * double(i)));
  }
  if (overflows) x.as<float>()[5] = 1e6F;
  return {kSamples, {{"x", x}}, 0};
}

std::map<std::string, std::vector<double>> variables(Executor& exe) {
  std::map<std::string, std::vector<double>> all;
  for (const char* name : {"fc0.w", "fc0.b", "fc0.w.m", "fc0.w.v", "fc1.w", "fc1.w.m", "bn0.gamma",
                           "bn0.running_mean", "bn0.running_var", "update"}) {
    const Tensor t = exe.parameter(name);
    for (int64_t i = 0; i < t.numel(); ++i) all[name].push_back(t.at(i));
  }
  return all;
}

TEST(LossScale, FollowsPyTorchsGradScaler) {
  std::ifstream file(std::string(FLUID_SOURCE_DIR) + "/tests/golden/grad_scaler.json");
  const auto golden = nlohmann::json::parse(file);
  const Program net = stateful_program();
  Executor exe(net, cpu(),
               {.batch = kSamples, .amp = f16_with({.interval = golden["growth_interval"]})});
  int64_t step = 0, skipped = 0;
  for (const auto& expected : golden["steps"]) {
    exe.run(batch_of(expected["overflows"]));
    skipped += expected["overflows"] ? 1 : 0;
    ++step;
    EXPECT_EQ(exe.parameter(kLossScale).item(), expected["scale"].get<double>()) << step;
    EXPECT_EQ(exe.parameter(kGoodSteps).item(), expected["good_steps"].get<double>()) << step;
    EXPECT_EQ(exe.parameter(kSkippedSteps).item(), double(skipped)) << step;
    EXPECT_EQ(exe.parameter("update").item(), double(step - skipped)) << step;
  }
  EXPECT_EQ(step, 60);
}

TEST(LossScale, ASkippedStepChangesNothingButTheScaleAndTheRandomNumbers) {
  const Program net = stateful_program();
  Executor exe(net, cpu(), {.batch = kSamples, .amp = f16_with({})});
  exe.run(batch_of(false));
  const auto before = variables(exe);
  const Tensor random = exe.parameter("rng");
  exe.run(batch_of(true));
  EXPECT_EQ(variables(exe), before);
  EXPECT_EQ(exe.parameter("rng").at(1), random.at(1) + 1);
  EXPECT_EQ(exe.parameter(kLossScale).item(), 32768);
  exe.run(batch_of(false));
  const auto after = variables(exe);
  for (const auto& [name, values] : before) EXPECT_NE(after.at(name), values) << name;
}

TEST(LossScale, IsTakenOffTheGradients) {
  const Program net = stateful_program(SGD{.lr = 0.01});  // Adam would not notice
  const auto trained_with = [&](double scale) {
    Executor exe(net, cpu(),
                 {.batch = kSamples, .amp = f16_with({.initial = scale, .dynamic = false})});
    for (int i = 0; i < 3; ++i) exe.run(batch_of(false));
    EXPECT_EQ(exe.parameter(kLossScale).item(), scale);
    return exe.parameter("fc0.w");
  };
  const Tensor a = trained_with(256), b = trained_with(4096);
  for (int64_t i = 0; i < a.numel(); ++i) EXPECT_NEAR(a.at(i), b.at(i), 1e-4) << i;
}

TEST(LossScale, StaysWithinFloorAndCeiling) {
  const Program net = stateful_program();
  Executor exe(net, cpu(),
               {.batch = kSamples,
                .amp = f16_with({.initial = 8, .interval = 1, .floor = 4, .ceiling = 16})});
  for (int i = 0; i < 3; ++i) exe.run(batch_of(false));
  EXPECT_EQ(exe.parameter(kLossScale).item(), 16);
  for (int i = 0; i < 4; ++i) exe.run(batch_of(true));
  EXPECT_EQ(exe.parameter(kLossScale).item(), 4);
}

}  // namespace
}  // namespace fluid
