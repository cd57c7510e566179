#include "executor/trainer/learning_rate_finder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "frontend/fluid.h"
#include "tests/support/errors.h"

namespace fluid::learning_rate_finder_test {
namespace {

/// Linear regression with a schedule that the host sets.
Program regression(const Schedule& schedule = Manual(), bool outputs_loss = true) {
  Program net("regression");
  const Value x = net.data("x", {kBatch, 1}, f32), y = net.data("y", {kBatch, 1}, f32);
  const Value w = net.parameter("w", {1, 1}, Init::zeros());
  const Value prediction = matmul(x, w), loss = mean(square(prediction - y));
  net.output("prediction", prediction);
  if (outputs_loss) net.output("error", loss);
  minimize(loss, SGD{.lr = 0.1}, {.schedule = schedule});
  return net;
}

/// x = 1 and y = 3: the loss is (w - 3)^2.
Reader samples() {
  return Reader(Dataset{{{"x", Tensor::of<float>({4, 1}, std::vector<float>(4, 1))},
                         {"y", Tensor::of<float>({4, 1}, std::vector<float>(4, 3))}}},
                {.batch = 2});
}

TEST(LearningRateFinder, FollowsTheRuleOfGradientDescent) {
  const Program net = regression();
  Executor exe(net, cpu());
  Reader data = samples();
  const LearningRateFinderOptions options{
      .first = 1e-3, .last = 0.3, .steps = 20, .smoothing = 0.5};
  const LearningRateCurve curve = find_learning_rate(exe, net, data, options);
  ASSERT_EQ(curve.points.size(), 20u);
  double w = 0, average = 0, weight = 0;
  for (size_t i = 0; i < curve.points.size(); ++i) {
    const double rate = 1e-3 * std::pow(300, static_cast<double>(i) / 19);
    const double loss = (w - 3) * (w - 3);
    average = 0.5 * average + 0.5 * loss;
    weight = 0.5 * weight + 0.5;
    EXPECT_NEAR(curve.points[i].rate, rate, 1e-9 * rate);
    EXPECT_NEAR(curve.points[i].loss, loss, 1e-5);
    EXPECT_NEAR(curve.points[i].smoothed, average / weight, 1e-5);
    w -= rate * 2 * (w - 3);
  }
}

TEST(LearningRateFinder, StopsWhenTheLossGrowsAndRestoresTheVariables) {
  const Program net = regression();
  Executor exe(net, cpu());
  exe.set_parameter("w", Tensor::of<float>({1, 1}, std::vector<float>{0.5f}));
  Reader data = samples();
  const LearningRateCurve curve =
      find_learning_rate(exe, net, data, {.first = 1e-3, .last = 1e4, .steps = 50});
  EXPECT_LT(curve.points.size(), 40u);
  EXPECT_EQ(exe.parameter("w").at(0), 0.5);
  ASSERT_TRUE(curve.suggestion.has_value());
  EXPECT_LT(*curve.suggestion, 1);  // gradient descent diverges above 1
}

/// The loss is a logistic function of log(rate), whose slope is largest in its middle.
TEST(LearningRateFinder, SuggestsTheRateOfTheSteepestDescent) {
  std::vector<LearningRatePoint> points;
  for (int i = 0; i <= 60; ++i) {
    const double rate = std::pow(10, -6 + 0.1 * i);
    const double loss = 1 / (1 + std::exp(3 * (std::log10(rate) + 3)));
    points.push_back({rate, loss, loss});
  }
  EXPECT_NEAR(suggested_learning_rate(points).value_or(0), 1e-3, 1e-9);
  std::vector<LearningRatePoint> rising = points;
  for (LearningRatePoint& p : rising) p.smoothed = -p.smoothed;
  EXPECT_FALSE(suggested_learning_rate(rising).has_value());
  EXPECT_FALSE(suggested_learning_rate({}).has_value());
}

TEST(LearningRateFinder, SaysWhatItNeeds) {
  const auto rejected = [](const Program& net, const LearningRateFinderOptions& options,
                           const std::string& message) {
    Executor exe(net, cpu());
    Reader data = samples();
    expect_user_error([&] { find_learning_rate(exe, net, data, options); }, message);
  };
  Program two("two");
  const Value loss = mean(square(two.parameter("w", {1}, Init::zeros())));
  two.output("loss", loss);
  for (const char* name : {"one", "other"}) minimize(loss, SGD{}, {.name = name});
  rejected(two, {}, "has several recipes: name one in LearningRateFinderOptions::recipe");
  rejected(regression(Schedule()), {}, "the program needs the schedule 'manual'");
  rejected(regression(Manual(), false), {}, "the minimized loss is not an output");
  rejected(regression(), {.first = 0}, "the rates must rise from above 0, not from 0.0 to 10.0");
  rejected(regression(), {.first = 2, .last = 1}, "not from 2.0 to 1.0");
  rejected(regression(), {.steps = 9}, "needs 10 steps or more, not 9");
  rejected(regression(), {.smoothing = 1}, "smoothing must lie in [0, 1), not be 1.0");
  rejected(regression(), {.divergence = 1}, "divergence must be above 1, not 1.0");
}

}  // namespace
}  // namespace fluid::learning_rate_finder_test
