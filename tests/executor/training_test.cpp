#include "tests/support/training.h"

#include <gtest/gtest.h>

#include "frontend/layers.h"
#include "frontend/optimizers.h"

namespace fluid::training_test {
namespace {

constexpr int64_t kSamples = 20'011;

std::vector<std::byte> trained(const ExecutorOptions& options, int steps = 30) {
  const Program net = linear_regression_program();
  const Batch batch = linear_batch(kSamples);
  Executor exe(net, cpu(), options);
  exe.prepare({.train = {kSamples}});
  for (int i = 0; i < steps; ++i) exe.run(batch);
  return parameter_bytes(exe);
}

TEST(Training, RecoversALine) {
  const Program net = linear_regression_program();
  const Batch batch = linear_batch(kSamples);
  Executor exe(net, cpu(), {.batch = kSamples});
  double loss = 0;
  for (int i = 0; i < 500; ++i) loss = exe.run(batch)["loss"].item();
  EXPECT_NEAR(loss, 4, 0.1);
  EXPECT_NEAR(exe.parameter("fc0.w").at(0), 2, 0.02);
  EXPECT_NEAR(exe.parameter("fc0.w").at(1), -3, 0.02);
  EXPECT_NEAR(exe.parameter("fc0.b").item(), 10, 0.1);
}

TEST(Training, ALinearRegressionStepIsOneKernel) {
  const Program net = linear_regression_program();
  const Executor exe(net, cpu());
  const std::string text = exe.text(Mode::train, 1'000'000);
  const size_t first = text.find("= fused(");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("= fused(", first + 1), std::string::npos) << text;
}

TEST(Training, GivesTheSameBytesEachTime) { EXPECT_EQ(trained({}), trained({})); }

TEST(Training, GivesTheSameBitsOnOneThreadAndOnTwo) {
  EXPECT_EQ(trained({.threads = 1}), trained({.threads = 2}));
}

TEST(Training, GivesTheSameBitsWhileThePlanIsChecked) {
  EXPECT_EQ(trained({}, 3), trained({.debug = {.verify_plan = true}}, 3));
}

TEST(Training, OtherBatchesShareTheVariables) {
  const Program net = linear_regression_program();
  Executor exe(net, cpu());
  exe.prepare({.train = {100, 7}, .eval = {7}});
  const Batch large = linear_batch(100), small = linear_batch(7);
  exe.run(large);
  const auto before = parameter_bytes(exe);
  const double loss = exe.eval(small)["loss"].item();
  EXPECT_EQ(parameter_bytes(exe), before);
  EXPECT_EQ(exe.run(small)["loss"].item(), loss);
  EXPECT_NE(parameter_bytes(exe), before);
}

TEST(Training, DropoutIsOffInEvalAndRepeatable) {
  auto losses = [] {
    Program net("dropout");
    const Value x = net.data("x", {kBatch, 2}, f32);
    const Value loss = mean(dropout(linear(x, {.units = 64}), {.p = 0.5}));
    net.output("loss", loss);
    minimize(loss, SGD{.lr = 0});
    Executor exe(net, cpu(), {.seed = 5});
    exe.prepare({.train = {10}, .eval = {10}});
    Batch batch = linear_batch(10);
    batch.columns.pop_back();
    std::vector<double> seen;
    for (int i = 0; i < 2; ++i) seen.push_back(exe.run(batch)["loss"].item());
    for (int i = 0; i < 2; ++i) seen.push_back(exe.eval(batch)["loss"].item());
    return seen;
  };
  const std::vector<double> seen = losses();
  EXPECT_NE(seen[0], seen[1]) << "another mask each step";
  EXPECT_EQ(seen[2], seen[3]);
  EXPECT_EQ(seen, losses());
}

}  // namespace
}  // namespace fluid::training_test
