// Optimizers against their published formulas in double.

#include <cmath>

#include "tests/support/op_harness.h"

namespace fluid::testing::optim_samples {
namespace {

double at(const Tensor& t, int64_t i) { return t.at(i); }

Tensor scalar(double value, DType dtype = f64) {
  return Tensor::of<double>({}, {{value}}).cast(dtype);
}

/// Parameters of several shapes after some updates, with `states` states (not negative, as a
/// moving average of squares is).
std::vector<Sample> optimizer_samples(int states, const std::vector<Attrs>& settings) {
  const std::vector<std::vector<int64_t>> shapes = {{3, 5}, {37}, {1}, {0, 3}, {2, 3, 1, 2}};
  std::vector<Sample> samples;
  for (const Attrs& attrs : settings) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      Sample s{{random_tensor(shapes[i]), random_tensor(shapes[i], -1, 1, 1), scalar(0.0625),
                scalar(static_cast<double>(i * i), i64)},
               attrs,
               {}};
      for (int k = 0; k < states; ++k) s.inputs.push_back(random_tensor(shapes[i], 0.25, 2, 2 + k));
      samples.push_back(s);
    }
  }
  return samples;
}

/// The new parameter and states of one element: f(gradient, states) changes the states and returns
/// the step.
using Rule = std::function<double(const Sample& s, double gradient, std::vector<double>& states)>;

/// What weight decay acts on.
enum class Decay { gradient, parameter };

OpTest optimizer_test(const std::string& op, int states, const std::vector<Attrs>& settings,
                      const Rule& rule, Decay decays = Decay::gradient) {
  OpTest t;
  t.op = op;
  t.samples = optimizer_samples(states, settings);
  t.slack = 4;
  t.reference = [=](const Sample& s) {
    std::vector<Tensor> results = {s.inputs[0].copy()};
    for (int k = 0; k < states; ++k) results.push_back(s.inputs[4 + static_cast<size_t>(k)].copy());
    const bool decoupled = decays == Decay::parameter;
    const double decay = s.attrs.get_or("weight_decay", decoupled ? 0.01 : 0.0);
    const double lr = at(s.inputs[2], 0);
    for (int64_t i = 0; i < s.inputs[0].numel(); ++i) {
      std::vector<double> state;
      for (size_t k = 1; k < results.size(); ++k) state.push_back(at(results[k], i));
      const double decayed = decay * at(s.inputs[0], i);
      const double step = rule(s, at(s.inputs[1], i) + (decoupled ? 0 : decayed), state);
      results[0].as<double>()[static_cast<size_t>(i)] -= lr * (step + (decoupled ? decayed : 0));
      for (size_t k = 1; k < results.size(); ++k) {
        results[k].as<double>()[static_cast<size_t>(i)] = state[k - 1];
      }
    }
    return results;
  };
  const std::vector<Type> vectors(static_cast<size_t>(states), Type{f32, {3}, {}});
  const auto bad = [&](std::vector<Type> inputs, Attrs attrs, const std::string& message) {
    inputs.insert(inputs.end(), vectors.begin(), vectors.end());
    t.bad.push_back({inputs, std::move(attrs), op + ": " + message});
  };
  const Type p = {f32, {3}, {}}, lr = {f32, {}, {}}, update = {i64, {}, {}};
  bad({{i32, {3}, {}}, p, lr, update}, {}, "expects a float parameter, got i32[3]");
  bad({p, {f32, {4}, {}}, lr, update}, {},
      "operand 1 must be of the parameter's type f32[3], got f32[4]");
  bad({p, p, p, update}, {}, "the learning rate must be a float scalar, got f32[3]");
  bad({p, p, lr, lr}, {}, "the update counter must be an i64 scalar, got f32[]");
  bad({p, p, lr, update}, {{"weight_decay", -1.0}},
      "attribute 'weight_decay' must be a number of 0.0 or more, not -1.0");
  bad({p, p, lr, update}, {{"weight_decay", std::nan("")}},
      "attribute 'weight_decay' must be a number of 0.0 or more, not nan");
  return t;
}

OpTest momentum_test() {
  const std::vector<Attrs> settings = {
      {}, {{"mu", 0.5}, {"nesterov", true}}, {{"mu", 0.0}, {"weight_decay", 0.125}}};
  OpTest t = optimizer_test(
      "momentum", 1, settings, [](const Sample& s, double gradient, std::vector<double>& state) {
        const double mu = s.attrs.get_or("mu", 0.9);
        state[0] = mu * state[0] + gradient;
        return s.attrs.get_or("nesterov", false) ? gradient + mu * state[0] : state[0];
      });
  const Type p = {f32, {3}, {}}, lr = {f32, {}, {}}, update = {i64, {}, {}};
  t.bad.push_back({{p, p, lr, update, p},
                   {{"mu", -0.5}},
                   "momentum: attribute 'mu' must be a number of 0.0 or more, not -0.5"});
  t.bad.push_back({{p, p, lr, update, {f32, {4}, {}}},
                   {},
                   "momentum: operand 4 must be of the parameter's type f32[3], got f32[4]"});
  return t;
}

OpTest adagrad_test() {
  const std::vector<Attrs> settings = {{},
                                       {{"lr_decay", 0.5}, {"eps", 0.125}, {"weight_decay", 0.25}}};
  OpTest t = optimizer_test(
      "adagrad", 1, settings, [](const Sample& s, double gradient, std::vector<double>& state) {
        state[0] += gradient * gradient;
        const double decay = 1 + at(s.inputs[3], 0) * s.attrs.get_or("lr_decay", 0.0);
        return gradient / (std::sqrt(state[0]) + s.attrs.get_or("eps", 1e-10)) / decay;
      });
  const Type p = {f32, {3}, {}}, lr = {f32, {}, {}}, update = {i64, {}, {}};
  for (const char* name : {"lr_decay", "eps"}) {
    t.bad.push_back({{p, p, lr, update, p},
                     {{name, -0.5}},
                     "adagrad: attribute '" + std::string(name) +
                         "' must be a number of 0.0 or more, not -0.5"});
  }
  return t;
}

OpTest adam_test(const std::string& op, bool decoupled) {
  const std::vector<Attrs> settings = {
      {},
      {{"beta1", 0.5}, {"beta2", 0.75}, {"eps", 0.125}, {"weight_decay", 0.25}},
      {{"beta1", 0.0}, {"beta2", 0.0}, {"weight_decay", 0.0}}};
  const Decay decay = decoupled ? Decay::parameter : Decay::gradient;
  OpTest t = optimizer_test(
      op, 2, settings,
      [](const Sample& s, double gradient, std::vector<double>& state) {
        const double beta1 = s.attrs.get_or("beta1", 0.9), beta2 = s.attrs.get_or("beta2", 0.999);
        const double steps = at(s.inputs[3], 0) + 1;
        state[0] = beta1 * state[0] + (1 - beta1) * gradient;
        state[1] = beta2 * state[1] + (1 - beta2) * gradient * gradient;
        const double mean = state[0] / (1 - std::pow(beta1, steps));
        const double square = state[1] / (1 - std::pow(beta2, steps));
        return mean / (std::sqrt(square) + s.attrs.get_or("eps", 1e-8));
      },
      decay);
  const Type p = {f32, {3}, {}}, lr = {f32, {}, {}}, update = {i64, {}, {}};
  const auto bad = [&](const std::string& name, double value, const std::string& message) {
    t.bad.push_back(
        {{p, p, lr, update, p, p}, {{name, value}}, op + ": attribute '" + name + "' " + message});
  };
  bad("beta1", 1, "must lie in [0.0, 1.0), not be 1.0");
  bad("beta2", -0.5, "must lie in [0.0, 1.0), not be -0.5");
  bad("eps", -1, "must be a number of 0.0 or more, not -1.0");
  return t;
}

OpTest ema_update_test() {
  OpTest t;
  t.op = "ema_update";
  for (const double decay : {0.999, 0.25, 0.0}) {
    for (const int64_t updates : {0, 1, 70}) {
      for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{3, 5}, {}, {0}}) {
        t.samples.push_back({{random_tensor(shape), random_tensor(shape, -2, 2, 1),
                              scalar(static_cast<double>(updates), i64)},
                             {{"decay", decay}},
                             {}});
      }
    }
  }
  t.reference = [](const Sample& s) {
    Tensor average = s.inputs[0].copy();
    const double decay = at(s.inputs[2], 0) == 0 ? 0 : s.attrs.get<double>("decay");
    for (int64_t i = 0; i < average.numel(); ++i) {
      double& a = average.as<double>()[static_cast<size_t>(i)];
      a = decay * a + (1 - decay) * at(s.inputs[1], i);
    }
    return std::vector{average};
  };
  const Type p = {f32, {3}, {}}, update = {i64, {}, {}};
  const Attrs decay = {{"decay", 0.5}};
  t.bad = {{{{f32, {4}, {}}, p, update},
            decay,
            "ema_update: the average of a parameter f32[3] cannot be f32[4]"},
           {{{i64, {3}, {}}, p, update},
            decay,
            "ema_update: the average of a parameter f32[3] cannot be i64[3]"},
           {{p, p, {i64, {1}, {}}},
            decay,
            "ema_update: the update counter must be an i64 scalar, got i64[1]"},
           {{p, p, update},
            {{"decay", 1.0}},
            "ema_update: attribute 'decay' must lie in [0.0, 1.0), not be 1.0"}};
  return t;
}

const AddOpTest kEmaUpdate(ema_update_test());
const AddOpTest kSgd(optimizer_test("sgd", 0, {{}, {{"weight_decay", 0.125}}},
                                    [](const Sample&, double gradient, std::vector<double>&) {
                                      return gradient;
                                    }));
const AddOpTest kAdagrad(adagrad_test());
const AddOpTest kMomentum(momentum_test());
const AddOpTest kAdam(adam_test("adam", /*decoupled=*/false));
const AddOpTest kAdamW(adam_test("adamw", /*decoupled=*/true));

}  // namespace
}  // namespace fluid::testing::optim_samples
