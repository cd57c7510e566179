// Equal-weight averages of the parameters and lookahead against 30 updates by PyTorch and by the
// paper's algorithm, which tests/golden/averages.py recorded, and in the ways to train.

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "frontend/fluid.h"
#include "passes/rewrite.h"
#include "tests/support/errors.h"
#include "tests/support/golden_training.h"
#include "tests/support/parallel_training.h"

namespace fluid::averages_test {
namespace {

using Json = nlohmann::json;

const Json& golden() {
  static const Json json = testing::golden_json("averages.json");
  return json;
}

MinimizeOptions options_of(const Json& c) {
  const Json& settings = c.at("settings");
  if (c.at("around") == "swa") {
    return {.swa = {.start = settings.at("start"), .every = settings.at("every")}};
  }
  return {.lookahead = {.every = settings.at("every"), .alpha = settings.at("alpha")}};
}

Program regression(const std::string& optimizer, const MinimizeOptions& options) {
  Program net("regression");
  const Value x = net.data("x", {kBatch, 3}, f64), y = net.data("y", {kBatch, 2}, f64);
  const Value loss = mean(square(linear(x, {.units = 2}) - y));
  net.output("loss", loss);
  if (optimizer == "adam") {
    minimize(loss, Adam{.lr = 0.1}, options);
  } else {
    minimize(loss, Momentum{.lr = 0.1}, options);
  }
  return net;
}

Executor started(const Program& net, const ExecutorOptions& options = {}) {
  Executor exe(net, cpu(), options);
  testing::set_golden_start(exe, {"fc0.w", "fc0.b"});
  return exe;
}

void expect_golden(const Json& c, const ExecutorOptions& options) {
  SCOPED_TRACE(c.at("around").get<std::string>() + " " + c.at("settings").dump());
  Executor exe = started(regression(c.at("optimizer"), options_of(c)), options);
  const std::string suffix = c.at("around") == "swa" ? ".swa" : "";
  testing::expect_golden_steps(exe, {"fc0.w" + suffix, "fc0.b" + suffix}, c.at("params"));
}

TEST(Averages, AreThoseOfPyTorchAndOfThePaper) {
  for (const Json& c : golden().at("cases")) expect_golden(c, {});
}

TEST(Averages, AreTheSameInMicroBatches) {
  for (const Json& c : golden().at("cases")) expect_golden(c, {.micro_batches = 2});
}

TEST(Averages, GoOnFromASnapshot) {
  const MinimizeOptions options = {.swa = {.start = 2, .every = 3}, .lookahead = {.every = 4}};
  const Program net = regression("adam", options);
  Executor one = started(net);
  for (uint64_t step = 0; step < 5; ++step) one.run(testing::golden_batch(step, 6, 3, 2));
  Executor two(net, cpu());
  two.prepare({.train = {6}});
  EXPECT_EQ(two.restore(one.snapshot()), "");
  for (uint64_t step = 5; step < 12; ++step) {
    one.run(testing::golden_batch(step, 6, 3, 2));
    two.run(testing::golden_batch(step, 6, 3, 2));
  }
  for (const char* name : {"fc0.w", "fc0.w.swa", "fc0.w.slow"}) {
    const Tensor a = one.parameter(name), b = two.parameter(name);
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(a.at(i), b.at(i)) << name;
  }
}

TEST(Averages, SwaIsUsedForEvaluation) {
  Executor exe = started(regression("adam", {.swa = {.start = 3}}));
  for (uint64_t step = 0; step < 6; ++step) exe.run(testing::golden_batch(step, 6, 3, 2));
  const double average = exe.parameter("fc0.w.swa").at(0), own = exe.parameter("fc0.w").at(0);
  EXPECT_NE(average, own);
  exe.use_averages(true);
  EXPECT_EQ(exe.parameter("fc0.w").at(0), average);
  exe.use_averages(false);
  EXPECT_EQ(exe.parameter("fc0.w").at(0), own);
}

/// Both recipes keep averages of the same parameter.
TEST(Averages, OfTwoRecipesAreThoseOfTheFirst) {
  Program net("two");
  const Value x = net.data("x", {kBatch, 3}, f64);
  const Value y = linear(x, {.units = 1});
  net.output("y", y);
  minimize(mean(square(y)), SGD{.lr = 0.1}, {.name = "a", .ema = {.decay = 0.5}});
  minimize(mean(square(y - 1)), SGD{.lr = 0.1}, {.name = "b", .swa = {.start = 1}});
  Executor exe(net, cpu());
  const Batch batch{4, {{"x", testing::golden_tensor(1, {4, 3})}}, 0};
  for (const char* recipe : {"a", "b", "a", "b"}) exe.run(recipe, batch);
  const double own = exe.parameter("fc0.w").at(0);
  const double first = exe.parameter("a:fc0.w.ema").at(0);
  ASSERT_NE(first, exe.parameter("b:fc0.w.swa").at(0));
  exe.use_averages(true);
  EXPECT_EQ(exe.parameter("fc0.w").at(0), first);
  exe.use_averages(false);
  EXPECT_EQ(exe.parameter("fc0.w").at(0), own);
}

TEST(Averages, AreTheSameOnRanksWithShardedState) {
  Program net = testing::parallel_program();
  Attrs& train = find_directive(net.ir().main())->attrs;
  train.set("swa_start", int64_t{2});
  train.set("lookahead_every", int64_t{2});
  ExecutorOptions options{.precision = {.dtype = f64}};
  const std::vector<double> one = testing::trained(net, options, 3).parameters;
  options.distributed.zero = 1;
  const std::vector<double> three = testing::trained_by(3, net, options, 3).parameters;
  testing::expect_near(three, one, 1e-9);
}

TEST(Averages, ASkippedStepChangesNone) {
  Program net("skip");
  const Value x = net.data("x", {kBatch, 2}, f32);
  const Value loss = mean(square(linear(x, {.units = 2})));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.1}, {.swa = {.start = 1}, .lookahead = {.every = 1}});
  Executor exe(net, cpu(), {.debug = {.check_finite = true}});
  const auto run = [&](float value) {
    exe.run(Feeds{{"x", Tensor::of<float>({1, 2}, std::vector<float>{value, 1})}});
  };
  run(2);
  const Tensor swa = exe.parameter("fc0.w.swa").copy(), slow = exe.parameter("fc0.w.slow").copy();
  run(INFINITY);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(exe.parameter("fc0.w.swa").at(i), swa.at(i));
    EXPECT_EQ(exe.parameter("fc0.w.slow").at(i), slow.at(i));
  }
}

TEST(Averages, RejectWrongSettings) {
  const auto rejected = [](const MinimizeOptions& options, const std::string& message) {
    expect_user_error([&] { regression("adam", options); }, message);
  };
  rejected({.swa = {.start = -1}}, "attribute 'swa_start' must be 0 or more, not -1");
  rejected({.swa = {.start = 1, .every = 0}}, "attribute 'swa_every' must be 1 or more, not 0");
  rejected({.lookahead = {.every = -2}}, "attribute 'lookahead_every' must be 0 or more, not -2");
  rejected({.lookahead = {.every = 2, .alpha = -1}},
           "attribute 'lookahead_alpha' must be a number of 0.0 or more, not -1.0");
  rejected({.ema = {.decay = 0.5}, .swa = {.start = 1}},
           "keeps averages by 'ema_decay' or from 'swa_start', not both");
  Program net("lookup");
  const Value table = net.parameter("table", {5, 2}, Init::constant(0.5), {.sparse = true});
  const Value loss = mean(square(embedding(table, net.data("index", {kBatch}, i64))));
  net.output("loss", loss);
  minimize(loss, SGD(), {.lookahead = {.every = 2}});
  Executor exe(net, cpu());
  expect_user_error(
      [&] {
        exe.run({{"index", Tensor::of<int64_t>({1}, std::vector<int64_t>{4})}});
      },
      "lookahead needs whole parameters, but 'table' is sparse");
}

}  // namespace
}  // namespace fluid::averages_test
