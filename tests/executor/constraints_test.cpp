// Penalties and bounds of the norm of a parameter against PyTorch, which
// tests/golden/constraints.py recorded, and in the ways to train.

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "frontend/fluid.h"
#include "tests/support/errors.h"
#include "tests/support/golden_training.h"
#include "tests/support/parallel_training.h"

namespace fluid::constraints_test {
namespace {

using Json = nlohmann::json;

const Json& golden() {
  static const Json json = testing::golden_json("constraints.json");
  return json;
}

Program regression(const ParameterOptions& options) {
  Program net("regression");
  const Value x = net.data("x", {kBatch, 3}, f64), y = net.data("y", {kBatch, 2}, f64);
  const Value w = net.parameter("w", {3, 2}, Init::zeros(), options);
  const Value b = net.parameter("b", {2}, Init::zeros(), {.dtype = f64});
  const Value loss = mean(square(matmul(x, w) + b - y));
  net.output("loss", loss);
  minimize(loss, Momentum{.lr = 0.1});
  return net;
}

void expect_golden(const Json& c, const ExecutorOptions& options) {
  const Json& given = c.at("options");
  SCOPED_TRACE(given.dump());
  Executor exe(regression({.dtype = f64,
                           .l1 = given.value("l1", 0.0),
                           .l2 = given.value("l2", 0.0),
                           .max_norm = given.value("max_norm", 0.0)}),
               cpu(), options);
  testing::set_golden_start(exe, {"w", "b"});
  testing::expect_golden_steps(exe, {"w", "b"}, c.at("params"));
}

TEST(Constraints, AreThoseOfPyTorch) {
  for (const Json& c : golden().at("cases")) expect_golden(c, {});
}

TEST(Constraints, AreTheSameInMicroBatches) {
  for (const Json& c : golden().at("cases")) expect_golden(c, {.micro_batches = 2});
}

/// A group sets after minimize() what ParameterOptions sets before it.
TEST(Constraints, AreSetByParameterGroups) {
  for (const Json& c : golden().at("cases")) {
    const Json& given = c.at("options");
    SCOPED_TRACE(given.dump());
    Program net = regression({.dtype = f64, .l1 = 0.5, .l2 = 0.25, .max_norm = 3});
    set_parameter_groups(net, {{.pattern = "w",
                                .l1 = given.value("l1", 0.0),
                                .l2 = given.value("l2", 0.0),
                                .max_norm = given.value("max_norm", 0.0)}});
    Executor exe(net, cpu());
    testing::set_golden_start(exe, {"w", "b"});
    testing::expect_golden_steps(exe, {"w", "b"}, c.at("params"));
    const OutputViews outputs = exe.eval(testing::golden_batch(0, 6, 3, 2));
    EXPECT_EQ(outputs.size(), 1u);
  }
}

TEST(Constraints, FollowWhatTrains) {
  Program net = regression({.dtype = f64, .l2 = 0.5});
  const Program without = regression({.dtype = f64});
  const size_t ops = net.ir().main().ops.size();
  EXPECT_NE(net.text().find("penalties = 1"), std::string::npos) << net.text();
  set_parameter_groups(net, {{.pattern = "w", .trainable = false}});
  EXPECT_EQ(net.ir().main().ops.size(), without.ir().main().ops.size()) << net.text();
  EXPECT_EQ(net.text().find("penalties"), std::string::npos) << net.text();
  set_parameter_groups(net, {{.pattern = "w", .trainable = true}});
  EXPECT_EQ(net.ir().main().ops.size(), ops) << net.text();
  EXPECT_NE(net.text().find("penalties = 1"), std::string::npos) << net.text();
}

/// With the feeds of testing::parallel_program().
Program constrained_program() {
  Program net("constrained");
  const Value x = net.data("x", {kBatch, 6}, f32);
  const Value y = net.data("label", {kBatch}, i64);
  const Value hidden = linear(x, {.units = 5, .l1 = 0.01, .max_norm = 0.4});
  const Value scores = linear(hidden, {.units = 3, .l2 = 0.1});
  const Value loss = mean(softmax_cross_entropy(scores, y));
  net.output("loss", loss);
  net.output("accuracy", accuracy(scores, y));
  net.output("scores", scores);
  minimize(loss, Momentum{.lr = 0.5});
  return net;
}

TEST(Constraints, AreTheSameOnRanksWithShardedState) {
  ExecutorOptions options{.precision = {.dtype = f64}};
  const Program net = constrained_program();
  const std::vector<double> one = testing::trained(net, options, 3).parameters;
  options.distributed.zero = 1;
  const std::vector<double> three = testing::trained_by(3, net, options, 3).parameters;
  testing::expect_near(three, one, 1e-9);
}

std::vector<double> norms_of_columns(const Tensor& w) {
  const int64_t rows = w.shape()[0], columns = w.shape()[1];
  std::vector<double> norms(static_cast<size_t>(columns));
  for (int64_t i = 0; i < rows * columns; ++i) {
    norms[static_cast<size_t>(i % columns)] += w.at(i) * w.at(i);
  }
  for (double& n : norms) n = std::sqrt(n);
  return norms;
}

TEST(Constraints, BoundTheNormInMixedPrecision) {
  for (const AmpLevel level : {AmpLevel::o1, AmpLevel::o2}) {
    Executor exe(constrained_program(), cpu(),
                 {.precision = {.amp = AmpOptions{.dtype = bf16, .level = level}}});
    Tensor x(f32, {8, 6}), label(i64, {8});
    for (int64_t i = 0; i < x.numel(); ++i) {
      x.as<float>()[static_cast<size_t>(i)] = static_cast<float>(i % 7) - 3;
    }
    for (int64_t i = 0; i < 8; ++i) label.as<int64_t>()[static_cast<size_t>(i)] = i % 3;
    for (int step = 0; step < 4; ++step) exe.run({{"x", x}, {"label", label}});
    double largest = 0;
    for (const double n : norms_of_columns(exe.parameter("fc0.w"))) {
      EXPECT_LE(n, 0.4001);
      largest = std::max(largest, n);
    }
    EXPECT_GT(largest, 0.39);
  }
}

TEST(Constraints, RejectWrongOptions) {
  const auto rejected = [](const ParameterOptions& options, const std::string& message) {
    expect_user_error([&] { regression(options); }, message);
  };
  rejected({.dtype = f64, .l1 = -1}, "attribute 'l1' must be a number of 0 or more, not -1");
  rejected({.dtype = f64, .l2 = NAN}, "attribute 'l2' must be a number of 0 or more, not nan");
  rejected({.dtype = f64, .max_norm = -2},
           "attribute 'max_norm' must be a number of 0 or more, not -2");
  Program net("lookup");
  const Value table =
      net.parameter("table", {5, 2}, Init::constant(0.5), {.sparse = true, .max_norm = 1});
  const Value loss = mean(square(embedding(table, net.data("index", {kBatch}, i64))));
  net.output("loss", loss);
  minimize(loss, SGD());
  Executor exe(net, cpu());
  expect_user_error(
      [&] {
        exe.run({{"index", Tensor::of<int64_t>({1}, std::vector<int64_t>{4})}});
      },
      "max_norm needs whole parameters, but 'table' is sparse");
}

}  // namespace
}  // namespace fluid::constraints_test
