// Gradients as values of a program, against their formulas and against finite differences.

#include <gtest/gtest.h>

#include <cmath>

#include "frontend/fluid.h"
#include "tests/support/errors.h"

namespace fluid::gradients_test {
namespace {

Tensor numbers(const std::vector<int64_t>& shape) {
  Tensor t(f64, shape);
  double v = 0.3;
  for (double& x : t.as<double>()) x = v = std::fmod(v * 7.3, 2.0) - 0.7;
  return t;
}

TEST(Gradients, AreValuesThatHaveGradients) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 3}, f64);
  const Value first = gradients(x * x * x, {x}).at(0), second = gradients(first, {x}).at(0);
  net.output("first", first);
  net.output("second", second);
  Executor exe(net, cpu());
  const Tensor t = numbers({2, 3});
  const OutputViews out = exe.predict({{"x", t}});
  for (int64_t i = 0; i < t.numel(); ++i) {
    EXPECT_NEAR(out["first"].at(i), 3 * t.at(i) * t.at(i), 1e-14);
    EXPECT_NEAR(out["second"].at(i), 6 * t.at(i), 1e-14);
  }
}

TEST(Gradients, AreThoseOfASumWithRespectToEachValue) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 3}, f64), w = net.data("w", {3}, f64);
  const Values g = gradients(x * w, {x, w});
  net.output("dx", g.at(0));
  net.output("dw", g.at(1));
  Executor exe(net, cpu());
  const Tensor xs = numbers({2, 3}), ws = numbers({3});
  const OutputViews out = exe.predict({{"x", xs}, {"w", ws}});
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(out["dx"].at(i), ws.at(i));
    EXPECT_NEAR(out["dw"].at(i), xs.at(i) + xs.at(3 + i), 1e-15);
  }
}

/// A critic with a gradient penalty: Gulrajani et al., "Improved training of Wasserstein GANs",
/// NeurIPS 2017.
Program penalized_critic() {
  Program net("critic");
  const Value x = net.data("x", {kBatch, 3}, f64);
  const Value w0 = net.parameter("w0", {3, 4}, Init::zeros(), {.dtype = f64});
  const Value w1 = net.parameter("w1", {4, 1}, Init::zeros(), {.dtype = f64});
  const Value critic = matmul(tanh(matmul(x, w0)), w1);
  const Value g = gradients(critic, {x}).at(0);
  const Value loss = mean(critic) + 10.0 * mean(square(sqrt(sum(g * g, {.axes = 1})) - 1.0));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 1});
  return net;
}

TEST(Gradients, OfAPenaltyAreFiniteDifferences) {
  const Program net = penalized_critic();
  const Tensor x = numbers({5, 3});
  Executor exe(net, cpu());
  const auto loss_with = [&](const std::string& name, Tensor value, int64_t i, double step) {
    value.as<double>()[static_cast<size_t>(i)] += step;
    exe.set_parameter(name, value);
    return exe.eval({{"x", x}})["loss"].item();
  };
  for (const std::string name : {"w0", "w1"}) {
    const auto start = [&] {
      exe.set_parameter("w0", numbers({3, 4}));
      exe.set_parameter("w1", numbers({4, 1}));
    };
    start();
    exe.run({{"x", x}});
    const Tensor before =
        numbers(name == "w0" ? std::vector<int64_t>{3, 4} : std::vector<int64_t>{4, 1});
    const Tensor after = exe.parameter(name);
    start();
    for (int64_t i = 0; i < before.numel(); ++i) {
      constexpr double kStep = 1e-5;
      const double slope =
          (loss_with(name, before.copy(), i, kStep) - loss_with(name, before.copy(), i, -kStep)) /
          (2 * kStep);
      EXPECT_NEAR(before.at(i) - after.at(i), slope, 1e-7) << name << "[" << i << "]";
    }
  }
}

TEST(Gradients, RejectWhatHasNone) {
  Program net("net");
  const Value x = net.data("x", {4}, f32), index = net.data("index", {4}, i64);
  expect_user_error([&] { gradients(index, {x}); },
                    "gradients: y must be a float tensor, got i64[4]");
  expect_user_error([&] { gradients(x, {index}); }, "gradients: expects float xs, got i64[4]");
}

TEST(Gradients, RejectAValueThatDoesNotReach) {
  Program net("net");
  const Value x = net.data("x", {4}, f32), other = net.data("other", {4}, f32);
  net.output("gradient", gradients(square(other), {x}).at(0));
  expect_user_error([&] { Executor(net, cpu()).prepare({.predict = {1}}); },
                    "gradients: y does not depend on xs[0], f32[4]");
}

TEST(Gradients, ThroughStepFunctionsAreZero) {
  Program net("net");
  const Value x = net.data("x", {3}, f32);
  net.output("gradient", gradients(floor(x) + sign(x), {x}).at(0));
  Executor exe(net, cpu());
  const float values[] = {-1.5, 0, 2.5};
  const OutputViews outputs = exe.predict({{"x", Tensor::of<float>({3}, values)}});
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(outputs["gradient"].at(i), 0);
}

TEST(Gradients, RejectASecondGradientThatDoesNotExist) {
  Program net("net");
  const Value x = net.data("x", {1, 1, 4, 4}, f32);
  const Value first = gradients(square(max_pool2d(x, {.kernel = 2})), {x}).at(0);
  net.output("second", gradients(first, {x}).at(0));
  expect_user_error([&] { Executor(net, cpu()).prepare({.predict = {1}}); },
                    "max_pool2d_grad has no gradient, but a gradient is taken through it");
}

}  // namespace
}  // namespace fluid::gradients_test
