// The learning rates of every schedule against PyTorch's, or against the formulas of Keras, Paddle
// and papers, which tests/golden/schedules.py recorded, and in the ways to train.

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "frontend/fluid.h"
#include "ops/arguments.h"
#include "ops/optim/plateau.h"
#include "ops/optim/schedule.h"
#include "ops/table.h"
#include "passes/rewrite.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/parallel_training.h"

namespace fluid::schedules_test {
namespace {

using Json = nlohmann::json;

const Json& golden() {
  static const Json json = testing::golden_json("schedules.json");
  return json;
}

/// An attribute of the type of `kind`.
Attr attr_of(const Json& value, const Attr& kind) {
  if (std::holds_alternative<bool>(kind)) return value.get<bool>();
  if (std::holds_alternative<int64_t>(kind)) return value.get<int64_t>();
  if (std::holds_alternative<double>(kind)) return value.get<double>();
  if (std::holds_alternative<std::vector<double>>(kind)) return value.get<std::vector<double>>();
  return value.get<std::vector<int64_t>>();
}

Attrs schedule_of_case(const Json& c) {
  const std::string schedule = c.at("schedule");
  Attrs attrs = {{"schedule", schedule}};
  for (const AttrDef& a : *find_schedule(schedule)->attrs) {
    if (!c.at("settings").contains(a.name)) continue;
    attrs.set(std::string(kSchedulePrefix) + a.name,
              attr_of(c.at("settings").at(a.name), a.fallback));
  }
  return attrs;
}

Program program_with(double lr, const Attrs& schedule) {
  Program net("net");
  const Value loss = mean(square(linear(net.data("x", {kBatch, 2}, f32), {.units = 1})));
  net.output("loss", loss);
  Attrs recipe = {{"lr", lr}, {"optimizer", std::string("sgd")}};
  for (const auto& [name, value] : schedule) recipe.set(name, value);
  minimize(loss, recipe);
  return net;
}

const Feeds kFeeds = {{"x", Tensor::of<float>({2, 2}, std::vector<float>{1, 1, 0.5, 1})}};

void expect_golden(const Json& c, const ExecutorOptions& options) {
  SCOPED_TRACE(c.at("schedule").get<std::string>() + " " + c.at("settings").dump());
  Executor exe(program_with(c.at("lr"), schedule_of_case(c)), cpu(), options);
  size_t update = 0;
  for (const double expected : c.at("rates")) {
    exe.run(kFeeds);
    ASSERT_NEAR(*exe.learning_rate(), expected, 1e-9) << "update " << update;
    ++update;
  }
  EXPECT_EQ(update, 60u);
}

TEST(Schedules, AreThoseOfPyTorchAndOfFormulas) {
  for (const Json& c : golden().at("cases")) expect_golden(c, {});
}

TEST(Schedules, CountUpdatesAndNotMicroBatches) {
  for (const std::string schedule : {"cosine", "multistep", "noam"}) {
    for (const Json& c : golden().at("cases")) {
      if (c.at("schedule") == schedule) expect_golden(c, {.micro_batches = 2});
    }
  }
}

TEST(Schedules, GoOnFromASnapshot) {
  for (const Json& c : golden().at("cases")) {
    if (!c.at("settings").contains("warmup")) continue;
    SCOPED_TRACE(c.at("schedule").get<std::string>() + " " + c.at("settings").dump());
    const Program net = program_with(c.at("lr"), schedule_of_case(c));
    Executor first(net, cpu());
    for (int update = 0; update < 4; ++update) first.run(kFeeds);
    Executor second(net, cpu());
    second.prepare({.train = {2}});
    EXPECT_EQ(second.restore(first.snapshot()), "");
    for (size_t update = 4; update < 12; ++update) {
      second.run(kFeeds);
      EXPECT_NEAR(*second.learning_rate(), c.at("rates").at(update).get<double>(), 1e-9) << update;
    }
  }
}

TEST(Schedules, HaveGoldensOfEverySetting) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const Json& c : golden().at("cases")) {
    for (const auto& [name, value] : c.at("settings").items()) {
      seen.insert({c.at("schedule"), name});
    }
  }
  for (const std::string& schedule : schedule_names()) {
    if (schedule == kPlateau || schedule == kManualSchedule) continue;  // plateau_test.cpp
    for (const AttrDef& a : *find_schedule(schedule)->attrs) {
      const bool is_setting = a.name != "lr" && a.name.find("warmup_") == std::string::npos &&
                              a.name != "constant_warmup";
      EXPECT_TRUE(!is_setting || seen.contains({schedule, a.name})) << schedule << " " << a.name;
    }
  }
}

/// A warm-up precedes the schedules that the host adjusts, too.
TEST(Schedules, WarmUpBeforeRatesThatTheHostSets) {
  for (const std::string schedule : {"plateau", "manual"}) {
    Executor exe(program_with(0.5, {{"schedule", schedule},
                                    {"schedule_warmup", int64_t{4}},
                                    {"schedule_warmup_start", 0.2}}),
                 cpu());
    for (const double factor : {0.4, 0.6, 0.8, 1.0, 1.0}) {
      exe.run(kFeeds);
      EXPECT_NEAR(*exe.learning_rate(), 0.5 * factor, 1e-12) << schedule;
    }
    if (schedule == "manual") {
      exe.set_learning_rate(0.125);
      exe.run(kFeeds);
      EXPECT_NEAR(*exe.learning_rate(), 0.125, 1e-12);
    }
  }
}

TEST(Schedules, AreTheSameOnRanks) {
  Program net = testing::parallel_program();
  Attrs& train = find_directive(net.ir().main())->attrs;
  train.set("schedule", std::string("one_cycle"));
  train.set("schedule_steps", int64_t{6});
  train.set("schedule_pct_start", 0.5);
  ExecutorOptions options{.precision = {.dtype = f64}};
  const std::vector<double> one = testing::trained(net, options, 3).parameters;
  options.distributed.zero = 1;
  const std::vector<double> three = testing::trained_by(3, net, options, 3).parameters;
  testing::expect_near(three, one, 1e-9);
}

/// `attrs`: the attributes of a struct with its default settings.
void expect_struct(const std::string& name, const Attrs& attrs) {
  SCOPED_TRACE(name);
  const OpDef& def = *find_schedule(name);
  EXPECT_EQ(attrs.get<std::string>("schedule"), name);
  EXPECT_EQ(attrs.size(), def.attrs->size()) << "schedule, and each attribute but lr";
  for (const AttrDef& a : *def.attrs) {
    if (a.name == "lr" || a.required) continue;
    EXPECT_EQ(*attrs.find(std::string(kSchedulePrefix) + a.name), a.fallback) << a.name;
  }
}

TEST(Schedules, HaveCppTypes) {
  expect_struct("constant", Schedule(ConstantRate()).attrs());
  expect_struct("step", Schedule(StepDecay{.every = 5}).attrs());
  expect_struct("multistep", Schedule(MultistepDecay{.milestones = {3, 5}}).attrs());
  expect_struct("exponential", Schedule(ExponentialDecay{.factor = 0.5}).attrs());
  expect_struct("polynomial", Schedule(PolynomialDecay{.steps = 5}).attrs());
  expect_struct("linear", Schedule(LinearDecay{.steps = 5}).attrs());
  expect_struct("cosine", Schedule(Cosine{.steps = 5}).attrs());
  expect_struct("cosine_restarts", Schedule(CosineRestarts{.period = 5}).attrs());
  expect_struct("one_cycle", Schedule(OneCycle{.steps = 5}).attrs());
  expect_struct("noam", Schedule(Noam{.d_model = 64, .warmup = 10}).attrs());
  expect_struct("inverse_time", Schedule(InverseTimeDecay{.decay = 0.5}).attrs());
  expect_struct("piecewise",
                Schedule(PiecewiseConstant{.boundaries = {3}, .values = {0.1, 0.2}}).attrs());
  expect_struct("plateau", Schedule(Plateau()).attrs());
  expect_struct("manual", Schedule(Manual()).attrs());
  EXPECT_EQ(schedule_names().size(), 14u);
  const Attrs attrs = Schedule(MultistepDecay{.milestones = {3, 5}, .warmup = 2}).attrs();
  EXPECT_EQ(attrs.get<std::vector<int64_t>>("schedule_milestones"), (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(attrs.get<int64_t>("schedule_warmup"), 2);
}

}  // namespace
}  // namespace fluid::schedules_test
