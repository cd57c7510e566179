// The learning rate falls where the loss of the epochs does not.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "frontend/fluid.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::plateau_test {
namespace {

Program program_with(double lr, const Schedule& schedule) {
  Program net("net");
  const Value loss = mean(square(linear(net.data("x", {kBatch, 2}, f32), {.units = 1})));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = lr}, {.schedule = schedule});
  return net;
}

const Batch kOnes{1, {{"x", Tensor::of<float>({1, 2}, std::vector<float>{1, 1})}}, 0};

double rate_of(Executor& exe) {
  exe.run(kOnes);
  return *exe.learning_rate();
}

TEST(PlateauSchedule, FollowsPyTorchs) {
  std::ifstream file(std::string(FLUID_SOURCE_DIR) + "/tests/golden/plateau.json");
  const auto golden = nlohmann::json::parse(file);
  int falls = 0, epochs = 0;
  for (const auto& run : golden["runs"]) {
    const auto& s = run["settings"];
    SCOPED_TRACE(s.dump());
    const Program net =
        program_with(s["lr"], Plateau{.mode = s.value("mode", "min"),
                                      .factor = s["factor"],
                                      .patience = s["patience"],
                                      .threshold = s["threshold"],
                                      .threshold_mode = s.value("threshold_mode", "rel"),
                                      .cooldown = s.value("cooldown", 0),
                                      .min_lr = s.value("min_lr", 0.0)});
    Executor exe(net, cpu(), {.batch = 1});
    EXPECT_TRUE(exe.uses_plateau_schedule());
    double rate = s["lr"];
    EXPECT_EQ(rate_of(exe), rate);
    for (const auto& epoch : run["epochs"]) {
      const bool falls_now = exe.reduce_on_plateau(std::stod(epoch[0].get<std::string>()));
      const double expected = epoch[1];
      EXPECT_EQ(falls_now, expected < rate) << epochs;
      rate = rate_of(exe);
      EXPECT_NEAR(rate, expected, 1e-15 * expected) << epochs;
      rate = expected;
      falls += falls_now ? 1 : 0;
      ++epochs;
    }
  }
  EXPECT_EQ(epochs, 320);
  EXPECT_GT(falls, 40);
}

TEST(PlateauSchedule, GoesOnFromACheckpoint) {
  const Program net = program_with(0.1, Plateau{.patience = 1});
  const TempDir dir;
  const std::string path = dir.file("run");
  {
    Executor exe(net, cpu(), {.batch = 1});
    for (const double loss : {1.0, 2.0, 2.0, 0.5, 0.6}) exe.reduce_on_plateau(loss);
    CheckpointDirectory checkpoints(path);
    checkpoints.save(exe.snapshot(), {.steps = 5});
  }
  Executor exe(net, cpu(), {.batch = 1});
  const Checkpoint from = *newest_checkpoint(path);
  EXPECT_EQ(exe.restore(from.snapshot), "");
  EXPECT_NEAR(rate_of(exe), 0.01, 1e-17);
  EXPECT_TRUE(exe.reduce_on_plateau(0.7)) << "the second above 0.5";
}

/// The best of one metric says nothing about another one.
TEST(PlateauSchedule, ForgetsTheMetricThatItNoLongerMonitors) {
  Executor before(program_with(0.1, Plateau{.patience = 0}), cpu(), {.batch = 1});
  EXPECT_FALSE(before.reduce_on_plateau(0.5));
  EXPECT_TRUE(before.reduce_on_plateau(0.6));
  for (const Plateau& other : {Plateau{.mode = "max", .patience = 0},
                               Plateau{.metric = "loss", .mode = "max", .patience = 0}}) {
    Executor exe(program_with(0.1, other), cpu(), {.batch = 1});
    EXPECT_NE(exe.restore(before.snapshot()), "");
    EXPECT_NEAR(rate_of(exe), 0.01, 1e-17) << "keeps the rate";
    EXPECT_FALSE(exe.reduce_on_plateau(0.2)) << "the first figure";
    EXPECT_TRUE(exe.reduce_on_plateau(0.1));
  }
}

TEST(PlateauSchedule, RejectsModesThatItDoesNotHave) {
  expect_user_error([] { program_with(0.1, Plateau{.mode = "highest"}); },
                    "attribute 'mode' must be min or max, not 'highest'");
  expect_user_error([] { program_with(0.1, Plateau{.threshold_mode = "absolute"}); },
                    "attribute 'threshold_mode' must be rel or abs, not 'absolute'");
  expect_user_error([] { program_with(0.1, Plateau{.threshold = 1}); },
                    "attribute 'threshold' must lie in [0.0, 1.0) unless 'threshold_mode' is abs");
  program_with(0.1, Plateau{.threshold = 2, .threshold_mode = "abs"});
}

TEST(PlateauSchedule, IsNoMatterOfOtherSchedules) {
  for (const Schedule& schedule : {Schedule(), Schedule(StepDecay{.every = 100})}) {
    const Program net = program_with(0.1, schedule);
    Executor exe(net, cpu(), {.batch = 1});
    EXPECT_FALSE(exe.uses_plateau_schedule());
    for (int epoch = 0; epoch < 30; ++epoch) EXPECT_FALSE(exe.reduce_on_plateau(1));
    exe.run(kOnes);
    EXPECT_EQ(exe.learning_rate().value_or(0.1), 0.1);
  }
}

/// Gives the same parameters as programs that record each learning rate.
TEST(ManualSchedule, TakesTheRateThatIsSetBetweenSteps) {
  const Program net = program_with(0.5, Manual{});
  Executor exe(net, cpu(), {.batch = 1}), constant(program_with(0.5, {}), cpu(), {.batch = 1});
  EXPECT_EQ(rate_of(exe), 0.5);
  constant.run(kOnes);
  EXPECT_EQ(exe.parameter("fc0.w").at(0), constant.parameter("fc0.w").at(0));
  for (const double rate : {0.25, 1e-3, 0.5}) {
    exe.set_learning_rate(rate);
    Executor other(program_with(rate, {}), cpu(), {.batch = 1});
    for (const std::string& name : exe.parameters()) {
      other.set_parameter(name, exe.parameter(name));
    }
    EXPECT_NEAR(rate_of(exe), rate, 1e-15);
    other.run(kOnes);
    EXPECT_EQ(exe.parameter("fc0.w").at(1), other.parameter("fc0.w").at(1));
  }
  Executor resumed(net, cpu(), {.batch = 1});
  resumed.restore(exe.snapshot());
  EXPECT_EQ(rate_of(resumed), 0.5) << "checkpoints keep the rate";
}

TEST(ManualSchedule, IsNeededToSetTheRate) {
  Executor constant(program_with(0.5, {}), cpu(), {.batch = 1});
  expect_user_error(
      [&] { constant.set_learning_rate(0.1); },
      "set_learning_rate() needs ExecutorOptions::settable_lr, or schedule Manual in the recipe");
  Executor settable(program_with(0.5, {}), cpu(), {.batch = 1, .settable_lr = true});
  EXPECT_EQ(rate_of(settable), 0.5);
  settable.set_learning_rate(0.25);
  EXPECT_EQ(rate_of(settable), 0.25);
  Executor exe(program_with(0.5, Manual{}), cpu());
  expect_user_error([&] { exe.set_learning_rate(0.1); },
                    "set_learning_rate(): prepare() a training step before");
  exe.prepare({.train = {1}});
  expect_user_error([&] { exe.set_learning_rate(0); },
                    "set_learning_rate(0): the rate must be positive and finite");
}

}  // namespace
}  // namespace fluid::plateau_test
