// Random numbers of a program: they differ between steps, and depend on neither micro-batches nor
// runs.

#include "frontend/random.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "executor/executor.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "frontend/program.h"
#include "ops/operators.h"
#include "tests/support/errors.h"

namespace fluid::random_test {
namespace {

constexpr int64_t kSamples = 6;
constexpr std::array kOutputs = {"uniform", "normal", "bernoulli", "class"};

/// Outputs one tensor of each distribution, beside a network that trains.
Program drawing_net() {
  Program net("drawing");
  const Value x = net.data("x", {kBatch, 3}, f32);
  net.output("uniform", random_uniform(x, {.low = 2, .high = 3}));
  net.output("normal", random_normal(x, {.mean = 1, .type = Type{f32, {kBatch, 500}, {}}}));
  net.output("bernoulli", bernoulli(sigmoid(x)));
  net.output("class", categorical(x));
  minimize(mean(square(linear(x, {.units = 1}))), SGD{.lr = 0.1f});
  return net;
}

Batch zeros() { return {.size = kSamples, .columns = {{"x", Tensor(f32, {kSamples, 3})}}}; }

std::vector<double> numbers(const Tensor& t) {
  std::vector<double> all;
  for (int64_t i = 0; i < t.numel(); ++i) all.push_back(t.at(i));
  return all;
}

using Draws = std::map<std::string, std::vector<double>>;

/// The outputs of each of two training steps.
std::vector<Draws> drawn(int64_t micro_batches = 1) {
  const Program net = drawing_net();
  Executor exe(net, cpu(), {.batch = kSamples, .micro_batches = micro_batches});
  std::vector<Draws> steps(2);
  for (Draws& draws : steps) {
    const OutputViews out = exe.run(zeros());
    for (const char* name : kOutputs) draws[name] = numbers(out[name]);
  }
  return steps;
}

TEST(Random, DiffersBetweenStepsAndNotBetweenRuns) {
  const std::vector<Draws> steps = drawn();
  for (const char* name : kOutputs) EXPECT_NE(steps[0].at(name), steps[1].at(name)) << name;
  EXPECT_EQ(steps, drawn());
  EXPECT_EQ(steps, drawn(3));
}

TEST(Random, HasTheRangesAndMoments) {
  const Draws draws = drawn()[0];
  for (const double u : draws.at("uniform")) EXPECT_TRUE(u >= 2 && u < 3) << u;
  double total = 0, squares = 0;
  const std::vector<double>& normal = draws.at("normal");
  for (const double v : normal) total += v;
  const double mean = total / static_cast<double>(normal.size());
  for (const double v : normal) squares += (v - mean) * (v - mean);
  EXPECT_NEAR(mean, 1, 0.1);
  EXPECT_NEAR(squares / static_cast<double>(normal.size()), 1, 0.1);
}

TEST(Random, StaysTheSameInEvalSteps) {
  const Program net = drawing_net();
  Executor exe(net, cpu(), {.batch = kSamples});
  const std::vector<double> first = numbers(exe.eval(zeros())["uniform"]);
  EXPECT_EQ(first, numbers(exe.eval(zeros())["uniform"]));
  exe.run(zeros());
  EXPECT_NE(first, numbers(exe.eval(zeros())["uniform"]));
}

TEST(Random, RejectsWrongUses) {
  Program net("net");
  const Value label = net.data("label", {kBatch}, i64);
  expect_user_error([&] { random_uniform(Value()); },
                    "random_uniform: the input is an empty value");
  expect_user_error([&] { random_normal(label); }, "random_normal: draws floats, not i64[?]");
  expect_user_error([&] { bernoulli(label); },
                    "bernoulli: the probabilities must be a float tensor, not i64[?]");
  expect_user_error([&] { categorical(label); }, "categorical: the logits must be a float tensor");
}

}  // namespace
}  // namespace fluid::random_test
