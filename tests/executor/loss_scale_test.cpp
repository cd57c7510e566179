// Training in f16: the loss is scaled, and steps whose gradients overflow are skipped.

#include "passes/loss_scale.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "frontend/optimizers.h"
#include "ops/source_kind.h"
#include "tests/support/training.h"

namespace fluid::loss_scale_test {
namespace {

constexpr int64_t kSamples = 8;

AmpOptions f16_with(const LossScale& scale) { return {.dtype = f16, .loss_scale = scale}; }

/// With everything that a step writes: moments, running statistics, counters, dropout.
template <class Optimizer = Adam>
Program trained_program(const Optimizer& optimizer = {.lr = 0.01},
                        const MinimizeOptions& rules = {}) {
  Program net = stateful_program();
  minimize(net.ir().main().outputs[0].value, optimizer, rules);
  return net;
}

Batch batch_of(bool overflows) { return stateful_batch(kSamples, overflows); }

TEST(LossScale, FollowsPyTorchsGradScaler) {
  std::ifstream file(std::string(FLUID_SOURCE_DIR) + "/tests/golden/grad_scaler.json");
  const auto golden = nlohmann::json::parse(file);
  const Program net = trained_program();
  const LossScale scale{.initial = golden["initial"],
                        .interval = golden["growth_interval"],
                        .floor = 0x1p-20};  // PyTorch has none
  Executor exe(net, cpu(), {.batch = kSamples, .precision = {.amp = f16_with(scale)}});
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
  EXPECT_LT(exe.parameter(kLossScale).item(), LossScale().floor) << "a floor would not be seen";
}

const std::set<std::string_view> kGoOn = {kLossScale, kGoodSteps, kSkippedSteps, kRandomState};

void expect_skipped_step_changes_little(const ExecutorOptions& options) {
  const Program net = trained_program(
      Adam{.lr = 0.01},
      {.clip = {.global_norm = 0.5}, .schedule = Cosine{.steps = 30}, .ema = {.decay = 0.9}});
  Executor exe(net, cpu(), options);
  exe.run(batch_of(false));
  const Tensor random = exe.parameter(kRandomState);
  for (const std::string& name : changed_by_step(exe, batch_of(true)))
    EXPECT_TRUE(kGoOn.contains(name)) << name;
  EXPECT_EQ(exe.parameter(kRandomState).at(0), random.at(0));
  EXPECT_EQ(exe.parameter(kRandomState).at(1), random.at(1) + 1);
  EXPECT_EQ(exe.parameter(kLossScale).item(), 32768);
  EXPECT_EQ(exe.parameter(kGoodSteps).item(), 0);
  EXPECT_EQ(exe.parameter(kSkippedSteps).item(), 1);
  // All that a good one changes: what is compared are not views of the same bytes.
  const std::set<std::string> changed = changed_by_step(exe, batch_of(false));
  for (const char* name : {"fc0.w",
                           "fc0.b",
                           "fc0.w.m",
                           "fc0.w.v",
                           "fc0.b.m",
                           "fc0.b.v",
                           "fc1.w",
                           "fc1.b",
                           "fc1.w.m",
                           "fc1.w.v",
                           "fc1.b.m",
                           "fc1.b.v",
                           "bn0.gamma",
                           "bn0.gamma.m",
                           "bn0.gamma.v",
                           "bn0.beta",
                           "bn0.running_mean",
                           "bn0.running_var",
                           "update",
                           "fc0.w.ema",
                           "bn0.beta.ema"}) {
    EXPECT_TRUE(changed.contains(name)) << name;
  }
}

TEST(LossScale, ASkippedStepChangesNothingButTheScaleAndTheRandomNumbers) {
  ExecutorOptions options{.batch = kSamples, .precision = {.amp = f16_with({})}};
  expect_skipped_step_changes_little(options);
  options.micro_batches = 3;
  expect_skipped_step_changes_little(options);
  options.precision.amp->level = AmpLevel::o2;
  expect_skipped_step_changes_little(options);
}

TEST(LossScale, IsTakenOffTheGradients) {
  const Program net = trained_program(SGD{.lr = 0.01});  // Adam would not notice
  const auto trained_with = [&](double scale) {
    Executor exe(
        net, cpu(),
        {.batch = kSamples, .precision = {.amp = f16_with({.initial = scale, .dynamic = false})}});
    for (int i = 0; i < 3; ++i) exe.run(batch_of(false));
    EXPECT_EQ(exe.parameter(kLossScale).item(), scale);
    return exe.parameter("fc0.w");
  };
  const Tensor a = trained_with(256), b = trained_with(4096);
  for (int64_t i = 0; i < a.numel(); ++i) EXPECT_NEAR(a.at(i), b.at(i), 1e-4) << i;
}

TEST(LossScale, StaysWithinFloorAndCeiling) {
  const Program net = trained_program();
  Executor exe(
      net, cpu(),
      {.batch = kSamples,
       .precision = {.amp = f16_with({.initial = 8, .interval = 1, .floor = 4, .ceiling = 16})}});
  for (int i = 0; i < 3; ++i) exe.run(batch_of(false));
  EXPECT_EQ(exe.parameter(kLossScale).item(), 16);
  for (int i = 0; i < 4; ++i) exe.run(batch_of(true));
  EXPECT_EQ(exe.parameter(kLossScale).item(), 4);
}

}  // namespace
}  // namespace fluid::loss_scale_test
