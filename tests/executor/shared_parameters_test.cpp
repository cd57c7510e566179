// Layers that share a parameter: it gets the sum of their gradients.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "executor/executor.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "frontend/program.h"
#include "ops/operators.h"

namespace fluid::shared_parameters_test {
namespace {

constexpr double kLr = 0.1;

Tensor waves(std::vector<int64_t> shape, double phase) {
  Tensor t(f64, std::move(shape));
  for (size_t i = 0; i < static_cast<size_t>(t.numel()); ++i)
    t.as<double>()[i] = std::sin(phase + 1.7 * static_cast<double>(i));
  return t;
}

/// The gradient that a step of SGD applied.
std::vector<double> gradient(const Tensor& before, const Tensor& after) {
  std::vector<double> all;
  for (int64_t i = 0; i < before.numel(); ++i) all.push_back((before.at(i) - after.at(i)) / kLr);
  return all;
}

/// Records two layers, the second of which reads the first's result; returns that of the second.
using TwoLayers = std::function<Value(Value x, Value first, Value second)>;

/// Trains one step of `layers` with one parameter in both places, then with two equal ones.
void expect_sum_of_gradients(const TwoLayers& layers, const Shape& shape,
                             const std::vector<int64_t>& x_shape) {
  const auto record = [&](Program& net, bool shared) {
    Shape feed = {kBatch};
    for (size_t d = 1; d < x_shape.size(); ++d) feed.push_back(x_shape[d]);
    const Value x = net.data("x", feed, f64);
    const Value first = net.parameter("first", shape, Init::zeros(), {.dtype = f64});
    const Value second =
        shared ? first : net.parameter("second", shape, Init::zeros(), {.dtype = f64});
    const Value loss = mean(square(layers(x, first, second)));
    net.output("loss", loss);
    minimize(loss, SGD{.lr = kLr});
  };
  Program one("shared"), two("apart");
  record(one, true);
  record(two, false);
  Executor shared(one, cpu()), apart(two, cpu());
  std::vector<int64_t> sizes;
  for (const Dim& d : shape) sizes.push_back(d.size);
  const Tensor start = waves(sizes, 0.3);
  shared.set_parameter("first", start);
  apart.set_parameter("first", start);
  apart.set_parameter("second", start);
  shared.run(Feeds{{"x", waves(x_shape, 0.8)}});
  apart.run(Feeds{{"x", waves(x_shape, 0.8)}});
  const auto both = gradient(start, shared.parameter("first"));
  const auto first = gradient(start, apart.parameter("first"));
  const auto second = gradient(start, apart.parameter("second"));
  double most = 0;
  for (size_t i = 0; i < both.size(); ++i) {
    EXPECT_NEAR(both[i], first[i] + second[i], 1e-12) << i;
    most = std::max(most, std::min(std::abs(first[i]), std::abs(second[i])));
  }
  EXPECT_GT(most, 1e-6) << "both layers must have a gradient";
}

TEST(SharedParameters, OfLinearLayers) {
  const auto layers = [](Value x, Value first, Value second) {
    const Value h = linear(x, {.units = 4, .bias = false, .act = Act::tanh, .weight = first});
    return linear(h, {.units = 4, .bias = false, .weight = second});
  };
  expect_sum_of_gradients(layers, {4, 4}, {3, 4});
}

TEST(SharedParameters, OfBiases) {
  const auto layers = [](Value x, Value first, Value second) {
    const Value h = linear(
        x, {.units = 4, .bias = first, .act = Act::tanh, .weight_init = Init::constant(0.3)});
    return linear(h, {.units = 4, .bias = second, .weight_init = Init::constant(0.2)});
  };
  expect_sum_of_gradients(layers, {4}, {3, 4});
}

TEST(SharedParameters, OfConvolutions) {
  const auto layers = [](Value x, Value first, Value second) {
    const Value h = conv2d(x, {.filters = 2,
                               .kernel = 3,
                               .padding = 1,
                               .bias = false,
                               .act = Act::tanh,
                               .weight = first});
    return conv2d(h, {.filters = 2, .kernel = 3, .padding = 1, .bias = false, .weight = second});
  };
  expect_sum_of_gradients(layers, {2, 2, 3, 3}, {2, 2, 5, 5});
}

TEST(SharedParameters, OfBatchNorms) {
  const auto layers = [](Value x, Value first, Value second) {
    const Value h = batch_norm(x, {.act = Act::tanh, .gamma = first});
    return batch_norm(h, {.gamma = second});
  };
  expect_sum_of_gradients(layers, {3}, {4, 3, 2, 2});
}

TEST(SharedParameters, TrainAsTheirOpsWrittenByHand) {
  const auto trained = [](const std::function<Value(Value, Value)>& network) {
    Program net("net");
    const Value x = net.data("x", {kBatch, 4}, f32);
    const Value w = parameter("w", {4, 4}, Init::normal(0, 0.5));
    const Value loss = mean(square(network(x, w)));
    net.output("loss", loss);
    minimize(loss, Adam{.lr = 0.01});
    Executor exe(net, cpu());
    Tensor feed(f32, {3, 4});
    for (size_t i = 0; i < 12; ++i) feed.as<float>()[i] = std::sin(static_cast<float>(i));
    for (int step = 0; step < 4; ++step) exe.run(Feeds{{"x", feed}});
    std::vector<double> values;
    for (int64_t i = 0; i < 16; ++i) values.push_back(exe.parameter("w").at(i));
    return values;
  };
  const auto by_layers = trained([](Value x, Value w) {
    const Value h = linear(x, {.units = 4, .bias = false, .act = Act::relu, .weight = w});
    return linear(h, {.units = 4, .bias = false, .weight = w});
  });
  const auto by_hand = trained([](Value x, Value w) { return matmul(relu(matmul(x, w)), w); });
  EXPECT_EQ(by_layers, by_hand);
}

}  // namespace
}  // namespace fluid::shared_parameters_test
