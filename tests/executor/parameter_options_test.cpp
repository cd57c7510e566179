// Options of parameters, against the optimizers' formulas computed here in f64.

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
#include "passes/half_weights.h"

namespace fluid::parameter_options_test {
namespace {

constexpr int kSteps = 5;

struct Variant {
  const char* name;
  ParameterOptions options;
};
const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = {
      {"plain", {.dtype = f64}},
      {"slow", {.dtype = f64, .lr_scale = 0.1}},
      {"undecayed", {.dtype = f64, .weight_decay = false}},
      {"both", {.dtype = f64, .lr_scale = 3, .weight_decay = false}},
      {"frozen", {.dtype = f64, .trainable = false}},
      {"still", {.dtype = f64, .lr_scale = 0}},
  };
  return all;
}

/// The loss is sum(x p^2) over all parameters p, so the gradient of p is 2 x p.
template <class Optimizer>
Program program(const Optimizer& optimizer, const MinimizeOptions& rules) {
  Program net("options");
  const Value x = net.data("x", {kBatch}, f64);
  Value loss;
  for (const Variant& v : variants()) {
    const Value p = net.parameter(v.name, {1}, Init::constant(0.7), v.options);
    const Value term = sum(x * square(p));
    loss = loss ? loss + term : term;
  }
  net.output("loss", loss);
  minimize(loss, optimizer, rules);
  return net;
}

/// Updates p by the gradient g in step t = 1, 2...
using Update = std::function<double(double p, double g, double lr, double decay, int t)>;

template <class Optimizer>
void compare(const Optimizer& optimizer, const std::function<Update()>& formula,
             const MinimizeOptions& rules = {},
             const std::function<double(int)>& schedule = nullptr) {
  const Program net = program(optimizer, rules);
  Executor exe(net, cpu());
  const std::vector<double> x = {0.9, -0.4, 0.6, 1.1, 0.2};
  for (const double one : x) exe.run(Feeds{{"x", Tensor::of<double>({1}, std::vector{one})}});
  for (const Variant& v : variants()) {
    const Update update = formula();
    double p = 0.7;
    for (int t = 1; v.options.trainable && t <= kSteps; ++t) {
      const double lr = (schedule ? schedule(t - 1) : optimizer.lr) * v.options.lr_scale;
      const double decay = v.options.weight_decay ? optimizer.weight_decay : 0;
      p = update(p, 2 * x[static_cast<size_t>(t - 1)] * p, lr, decay, t);
    }
    EXPECT_NEAR(exe.parameter(v.name).item(), p, 1e-14) << v.name;
  }
}

Update sgd_formula() {
  return [](double p, double g, double lr, double decay, int) { return p - lr * (g + decay * p); };
}

Update momentum_formula() {
  return [v = 0.0](double p, double g, double lr, double decay, int) mutable {
    v = 0.9 * v + g + decay * p;
    return p - lr * v;
  };
}

Update adam_formula(bool decoupled) {
  return [decoupled, m = 0.0, v = 0.0](double p, double g, double lr, double decay, int t) mutable {
    if (decoupled) {
      p -= lr * decay * p;
    } else {
      g += decay * p;
    }
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    const double m_hat = m / (1 - std::pow(0.9, t)), v_hat = v / (1 - std::pow(0.999, t));
    return p - lr * m_hat / (std::sqrt(v_hat) + 1e-8);
  };
}

TEST(ParameterOptions, FollowTheFormulasOfTheOptimizers) {
  compare(SGD{.lr = 0.1, .weight_decay = 0.05}, sgd_formula);
  compare(Momentum{.lr = 0.1, .weight_decay = 0.05}, momentum_formula);
  compare(Adam{.lr = 0.1, .weight_decay = 0.05}, [] { return adam_formula(false); });
  compare(AdamW{.lr = 0.1, .weight_decay = 0.05}, [] { return adam_formula(true); });
}

TEST(ParameterOptions, ScaleAScheduledLearningRate) {
  compare(SGD{.lr = 0.1, .weight_decay = 0.05}, sgd_formula,
          {.schedule = StepDecay{.every = 2, .factor = 0.5}},
          [](int update) { return 0.1 * std::pow(0.5, update / 2); });
}

TEST(ParameterOptions, AFrozenParameterHasNoStateButIsSaved) {
  const Program net = program(Adam{}, {});
  Executor exe(net, cpu());
  const std::string text = exe.text(Mode::train, 1);
  EXPECT_NE(text.find("param \"frozen\""), std::string::npos);
  EXPECT_NE(text.find("\"plain.m\""), std::string::npos);
  EXPECT_EQ(text.find("frozen.m"), std::string::npos);
  EXPECT_EQ(text.find("store \"frozen\""), std::string::npos);
  const std::vector<std::string> saved = exe.parameters();
  EXPECT_EQ(std::ranges::count(saved, "frozen"), 1);
}

TEST(ParameterOptions, AFrozenWeightKeepsItsHalfPrecisionCopy) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 8}, f32);
  const Value h = linear(x, {.units = 8, .bias = false, .act = Act::tanh, .trainable = false});
  const Value loss = mean(square(linear(h, {.units = 4, .bias = false})));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.1});
  ExecutorOptions options;
  options.batch = 1;
  options.precision.amp = AmpOptions{.dtype = bf16, .level = AmpLevel::o2};
  Executor exe(net, cpu(), options);
  const Tensor feed = Tensor::of<float>({1, 8}, std::vector<float>{1, 2, -1, 3, 0, 1, -2, 1});
  const auto values = [&](const std::string& name) {
    const Tensor t = exe.parameter(name);
    std::vector<double> all;
    for (int64_t i = 0; i < t.numel(); ++i) all.push_back(t.at(i));
    return all;
  };
  const auto frozen = values("fc0.w"), copy = values(half_weight_name("fc0.w"));
  const auto trained = values("fc1.w");
  for (int step = 0; step < 2; ++step) exe.run(Feeds{{"x", feed}});
  EXPECT_EQ(values("fc0.w"), frozen);
  EXPECT_EQ(values(half_weight_name("fc0.w")), copy);
  EXPECT_NE(values("fc1.w"), trained);
}

}  // namespace
}  // namespace fluid::parameter_options_test
