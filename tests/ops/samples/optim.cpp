// Optimizers against their published formulas in double.

#include <cmath>

#include "ops/arguments.h"
#include "ops/optim/optimizer.h"
#include "tests/support/op_harness.h"

namespace fluid::testing::optim_samples {
namespace {

double at(const Tensor& t, int64_t i) { return t.at(i); }

Tensor scalar(double value, DType dtype = f64) {
  return Tensor::of<double>({}, {{value}}).cast(dtype);
}

int states_of(const std::string& op, const Attrs& settings) {
  const OpDef& def = op_named(op);
  return static_cast<int>(optimizer_states(def, complete_attrs(def, settings, {})).size());
}

/// Parameters of several shapes after some updates. States are not negative, as a moving average of
/// squares is.
std::vector<Sample> optimizer_samples(const std::string& op, const std::vector<Attrs>& settings) {
  const std::vector<std::vector<int64_t>> shapes = {{3, 5}, {37}, {1}, {0, 3}, {2, 3, 1, 2}};
  std::vector<Sample> samples;
  for (const Attrs& attrs : settings) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      Sample s{{random_tensor(shapes[i]), random_tensor(shapes[i], -1, 1, 1), scalar(0.0625),
                scalar(static_cast<double>(i * i), i64)},
               attrs,
               {}};
      for (int k = 0; k < states_of(op, attrs); ++k) {
        s.inputs.push_back(random_tensor(shapes[i], 0.25, 2, 2 + k));
      }
      for (size_t k = 0; k < op_named(op).optimizer->tensors.size(); ++k) {
        s.inputs.push_back(random_tensor(shapes[i], -1, 1, 9 + k));
      }
      for (size_t k = 0; k < op_named(op).optimizer->scalars.size(); ++k) {
        s.inputs.push_back(scalar(0.5 + 0.125 * static_cast<double>(k)));
      }
      samples.push_back(s);
    }
  }
  return samples;
}

/// The new parameter and states of one element: f(gradient, states) changes the states and returns
/// the step.
using Rule = std::function<double(const Sample& s, double gradient, std::vector<double>& states)>;

/// The tensor to which weight decay applies.
enum class Decay { gradient, parameter };

/// Adds to `t` the wrong uses of its operands. `extra`: operands behind the update counter.
void add_bad_operands(OpTest& t, const std::vector<Type>& extra) {
  const auto bad = [&](std::vector<Type> inputs, Attrs attrs, const std::string& message) {
    inputs.insert(inputs.end(), extra.begin(), extra.end());
    t.bad.push_back({inputs, std::move(attrs), t.op + ": " + message});
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
}

/// Types of the operands of optimizer `op` behind the update counter.
std::vector<Type> extra_operands(const std::string& op, size_t scalars) {
  const size_t tensors = op_named(op).optimizer->tensors.size();
  std::vector<Type> types(static_cast<size_t>(states_of(op, {})) + tensors, Type{f32, {3}, {}});
  types.resize(types.size() + scalars, Type{f32, {}, {}});
  return types;
}

OpTest optimizer_test(const std::string& op, const std::vector<Attrs>& settings, const Rule& rule,
                      Decay decays = Decay::gradient) {
  OpTest t;
  t.op = op;
  t.samples = optimizer_samples(op, settings);
  t.slack = 4;
  t.reference = [=](const Sample& s) {
    std::vector<Tensor> results = {s.inputs[0].copy()};
    for (size_t k = 4; k < 4 + static_cast<size_t>(states_of(op, s.attrs)); ++k) {
      results.push_back(s.inputs[k].copy());
    }
    const bool decoupled =
        decays == Decay::parameter || s.attrs.get_or("decoupled_weight_decay", false);
    const double decay = complete_attrs(op_named(op), s.attrs, {}).get<double>("weight_decay");
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
  add_bad_operands(t, extra_operands(op, op_named(op).optimizer->scalars.size()));
  return t;
}

/// Adds to `t` the wrong use of a setting.
void add_bad_setting(OpTest& t, const std::string& name, double value, const std::string& message) {
  const Type p = {f32, {3}, {}}, lr = {f32, {}, {}}, update = {i64, {}, {}};
  std::vector<Type> inputs = {p, p, lr, update};
  for (const Type& type : extra_operands(t.op, op_named(t.op).optimizer->scalars.size())) {
    inputs.push_back(type);
  }
  t.bad.push_back({inputs, {{name, value}}, t.op + ": attribute '" + name + "' " + message});
}

void add_bad_factors(OpTest& t, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    add_bad_setting(t, name, 1, "must lie in [0.0, 1.0), not be 1.0");
    add_bad_setting(t, name, -0.5, "must lie in [0.0, 1.0), not be -0.5");
  }
}

OpTest momentum_test() {
  const std::vector<Attrs> settings = {{},
                                       {{"momentum", 0.5}, {"nesterov", true}},
                                       {{"momentum", 0.0}, {"weight_decay", 0.125}},
                                       {{"dampening", 0.25}}};
  OpTest t = optimizer_test(
      "momentum", settings, [](const Sample& s, double gradient, std::vector<double>& state) {
        const double momentum = s.attrs.get_or("momentum", 0.9);
        const double dampening = s.attrs.get_or("dampening", 0.0);
        const bool is_first = at(s.inputs[3], 0) == 0 && dampening != 0;
        state[0] = is_first ? gradient : momentum * state[0] + (1 - dampening) * gradient;
        return s.attrs.get_or("nesterov", false) ? gradient + momentum * state[0] : state[0];
      });
  add_bad_setting(t, "momentum", -0.5, "must be a number of 0.0 or more, not -0.5");
  const Type p = {f32, {3}, {}}, lr = {f32, {}, {}}, update = {i64, {}, {}};
  t.bad.push_back({{p, p, lr, update, p},
                   {{"nesterov", true}, {"dampening", 0.5}},
                   "momentum: attribute 'nesterov' needs a 'momentum' above 0 and no 'dampening'"});
  t.bad.push_back({{p, p, lr, update, {f32, {4}, {}}},
                   {},
                   "momentum: operand 4 must be of the parameter's type f32[3], got f32[4]"});
  return t;
}

OpTest adagrad_test() {
  const std::vector<Attrs> settings = {{},
                                       {{"lr_decay", 0.5}, {"eps", 0.125}, {"weight_decay", 0.25}},
                                       {{"initial_accumulator_value", 0.5}}};
  OpTest t = optimizer_test(
      "adagrad", settings, [](const Sample& s, double gradient, std::vector<double>& state) {
        state[0] += gradient * gradient;
        const double decay = 1 + at(s.inputs[3], 0) * s.attrs.get_or("lr_decay", 0.0);
        const double sum = state[0] + s.attrs.get_or("initial_accumulator_value", 0.0);
        return gradient / (std::sqrt(sum) + s.attrs.get_or("eps", 1e-10)) / decay;
      });
  for (const char* name : {"lr_decay", "initial_accumulator_value", "eps"}) {
    add_bad_setting(t, name, -0.5, "must be a number of 0.0 or more, not -0.5");
  }
  return t;
}

OpTest adam_test(const std::string& op, bool decoupled) {
  const std::vector<Attrs> settings = {
      {},
      {{"beta1", 0.5}, {"beta2", 0.75}, {"eps", 0.125}, {"weight_decay", 0.25}},
      {{"beta1", 0.0}, {"beta2", 0.0}, {"weight_decay", 0.0}},
      {{"beta2", 0.5}, {"amsgrad", true}}};
  const Decay decay = decoupled ? Decay::parameter : Decay::gradient;
  OpTest t = optimizer_test(
      op, settings,
      [](const Sample& s, double gradient, std::vector<double>& state) {
        const double beta1 = s.attrs.get_or("beta1", 0.9), beta2 = s.attrs.get_or("beta2", 0.999);
        const double steps = at(s.inputs[3], 0) + 1;
        state[0] = beta1 * state[0] + (1 - beta1) * gradient;
        state[1] = beta2 * state[1] + (1 - beta2) * gradient * gradient;
        if (state.size() > 2) state[2] = std::max(state[2], state[1]);
        const double mean = state[0] / (1 - std::pow(beta1, steps));
        const double square = state.back() / (1 - std::pow(beta2, steps));
        return mean / (std::sqrt(square) + s.attrs.get_or("eps", 1e-8));
      },
      decay);
  add_bad_factors(t, {"beta1", "beta2"});
  add_bad_setting(t, "eps", -1, "must be a number of 0.0 or more, not -1.0");
  const Type p = {f32, {3}, {}}, lr = {f32, {}, {}}, update = {i64, {}, {}};
  t.bad.push_back({{p, p, lr, update, p, p},
                   {{"amsgrad", true}},
                   op + ": needs 3 states with its settings, got 2"});
  return t;
}

OpTest adamax_test() {
  OpTest t = optimizer_test(
      "adamax", {{}, {{"beta1", 0.5}, {"beta2", 0.5}, {"eps", 0.125}, {"weight_decay", 0.25}}},
      [](const Sample& s, double gradient, std::vector<double>& state) {
        const double beta1 = s.attrs.get_or("beta1", 0.9), beta2 = s.attrs.get_or("beta2", 0.999);
        state[0] = beta1 * state[0] + (1 - beta1) * gradient;
        state[1] = std::max(beta2 * state[1], std::abs(gradient) + s.attrs.get_or("eps", 1e-8));
        return state[0] / (1 - std::pow(beta1, at(s.inputs[3], 0) + 1)) / state[1];
      });
  add_bad_factors(t, {"beta1", "beta2"});
  return t;
}

OpTest radam_test() {
  OpTest t = optimizer_test(
      "radam",
      {{},
       {{"beta1", 0.5}, {"beta2", 0.75}, {"eps", 0.125}, {"weight_decay", 0.25}},
       {{"beta2", 0.9}, {"weight_decay", 0.25}, {"decoupled_weight_decay", true}},
       {{"beta2", 0.9999}},
       {{"beta1", 0.0}, {"beta2", 0.0}}},
      [](const Sample& s, double gradient, std::vector<double>& state) {
        const double beta1 = s.attrs.get_or("beta1", 0.9), beta2 = s.attrs.get_or("beta2", 0.999);
        const double steps = at(s.inputs[3], 0) + 1;
        state[0] = beta1 * state[0] + (1 - beta1) * gradient;
        state[1] = beta2 * state[1] + (1 - beta2) * gradient * gradient;
        const double mean = state[0] / (1 - std::pow(beta1, steps));
        const double power = std::pow(beta2, steps), limit = 2 / (1 - beta2) - 1;
        const double length = limit - 2 * steps * power / (1 - power);
        if (length <= 5) return mean;
        const double rectification =
            std::sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length));
        const double adaptive =
            std::sqrt(1 - power) / (std::sqrt(state[1]) + s.attrs.get_or("eps", 1e-8));
        return mean * rectification * adaptive;
      });
  add_bad_factors(t, {"beta1", "beta2"});
  return t;
}

OpTest adadelta_test() {
  OpTest t = optimizer_test(
      "adadelta", {{}, {{"rho", 0.5}, {"eps", 0.125}, {"weight_decay", 0.25}}},
      [](const Sample& s, double gradient, std::vector<double>& state) {
        const double rho = s.attrs.get_or("rho", 0.9), eps = s.attrs.get_or("eps", 1e-6);
        state[0] = rho * state[0] + (1 - rho) * gradient * gradient;
        const double delta = std::sqrt((state[1] + eps) / (state[0] + eps)) * gradient;
        state[1] = rho * state[1] + (1 - rho) * delta * delta;
        return delta;
      });
  add_bad_factors(t, {"rho"});
  return t;
}

OpTest rmsprop_test() {
  OpTest t = optimizer_test("rmsprop",
                            {{},
                             {{"alpha", 0.5}, {"eps", 0.125}, {"weight_decay", 0.25}},
                             {{"momentum", 0.5}},
                             {{"alpha", 0.5}, {"eps", 0.125}, {"centered", true}},
                             {{"eps", 0.125}, {"centered", true}, {"momentum", 0.25}}},
                            [](const Sample& s, double gradient, std::vector<double>& state) {
                              const double alpha = s.attrs.get_or("alpha", 0.99);
                              const double momentum = s.attrs.get_or("momentum", 0.0);
                              state[0] = alpha * state[0] + (1 - alpha) * gradient * gradient;
                              double variance = state[0];
                              if (s.attrs.get_or("centered", false)) {
                                state[1] = alpha * state[1] + (1 - alpha) * gradient;
                                variance -= state[1] * state[1];
                              }
                              const double step =
                                  gradient / (std::sqrt(variance) + s.attrs.get_or("eps", 1e-8));
                              if (momentum == 0) return step;
                              return state.back() = momentum * state.back() + step;
                            });
  for (Sample& s : t.samples) {  // the mean of the gradients, whose square is below `square_avg`
    if (!s.attrs.get_or("centered", false)) continue;
    for (double& x : s.inputs[5].as<double>()) x /= 8;
  }
  add_bad_factors(t, {"alpha"});
  add_bad_setting(t, "momentum", -0.5, "must be a number of 0.0 or more, not -0.5");
  return t;
}

OpTest lion_test() {
  OpTest t = optimizer_test(
      "lion", {{}, {{"beta1", 0.5}, {"beta2", 0.75}, {"weight_decay", 0.25}}},
      [](const Sample& s, double gradient, std::vector<double>& state) {
        const double beta1 = s.attrs.get_or("beta1", 0.9), beta2 = s.attrs.get_or("beta2", 0.99);
        const double direction = beta1 * state[0] + (1 - beta1) * gradient;
        state[0] = beta2 * state[0] + (1 - beta2) * gradient;
        return static_cast<double>(direction > 0) - static_cast<double>(direction < 0);
      },
      Decay::parameter);
  add_bad_factors(t, {"beta1", "beta2"});
  return t;
}

double mu(const Sample& s, double steps) {
  const double decay = s.attrs.get_or("momentum_decay", 0.004);
  return s.attrs.get_or("beta1", 0.9) * (1 - 0.5 * std::pow(0.96, steps * decay));
}

OpTest nadam_test() {
  OpTest t = optimizer_test(
      "nadam",
      {{},
       {{"beta1", 0.5}, {"beta2", 0.75}, {"eps", 0.125}, {"weight_decay", 0.25}},
       {{"momentum_decay", 2.0}, {"weight_decay", 0.25}, {"decoupled_weight_decay", true}}},
      [](const Sample& s, double gradient, std::vector<double>& state) {
        const double beta1 = s.attrs.get_or("beta1", 0.9), beta2 = s.attrs.get_or("beta2", 0.999);
        const double steps = at(s.inputs[3], 0) + 1, product = at(s.inputs[6], 0);
        state[0] = beta1 * state[0] + (1 - beta1) * gradient;
        state[1] = beta2 * state[1] + (1 - beta2) * gradient * gradient;
        const double now = mu(s, steps), next = mu(s, steps + 1);
        const double root = std::sqrt(state[1] / (1 - std::pow(beta2, steps)));
        return ((1 - now) / (1 - product) * gradient + next / (1 - product * next) * state[0]) /
               (root + s.attrs.get_or("eps", 1e-8));
      });
  add_bad_factors(t, {"beta1", "beta2"});
  add_bad_setting(t, "momentum_decay", -1, "must be a number of 0.0 or more, not -1.0");
  const Type p = {f32, {3}, {}}, lr = {f32, {}, {}}, update = {i64, {}, {}};
  t.bad.push_back({{p, p, lr, update, p, p, p},
                   {},
                   "nadam: the mu_product must be a float scalar, got f32[3]"});
  return t;
}

OpTest nadam_mu_product_test() {
  OpTest t;
  t.op = "nadam_mu_product";
  for (const Attrs& attrs :
       std::vector<Attrs>{{}, {{"beta1", 0.5}, {"momentum_decay", 0.25}}, {{"beta1", 0.0}}}) {
    for (const int64_t updates : {0, 1, 70}) {
      t.samples.push_back({{scalar(0.625), scalar(static_cast<double>(updates), i64)}, attrs, {}});
    }
  }
  t.reference = [](const Sample& s) {
    return std::vector{scalar(at(s.inputs[0], 0) * mu(s, at(s.inputs[1], 0) + 1))};
  };
  const Type product = {f32, {}, {}}, update = {i64, {}, {}};
  t.bad = {{{{f32, {3}, {}}, update},
            {},
            "nadam_mu_product: the product must be a float scalar, got f32[3]"},
           {{product, product},
            {},
            "nadam_mu_product: the update counter must be an i64 scalar, got f32[]"}};
  return t;
}

double lamb_step(const Sample& s, double param, double gradient, std::vector<double>& state) {
  const double beta1 = s.attrs.get_or("beta1", 0.9), beta2 = s.attrs.get_or("beta2", 0.999);
  const double steps = at(s.inputs[3], 0) + 1;
  state[0] = beta1 * state[0] + (1 - beta1) * gradient;
  state[1] = beta2 * state[1] + (1 - beta2) * gradient * gradient;
  const double root = std::sqrt(state[1] / (1 - std::pow(beta2, steps)));
  return state[0] / (1 - std::pow(beta1, steps)) / (root + s.attrs.get_or("eps", 1e-6)) +
         s.attrs.get_or("weight_decay", 0.01) * param;
}

const std::vector<Attrs> kLambSettings = {
    {},
    {{"beta1", 0.5}, {"beta2", 0.75}, {"eps", 0.125}, {"weight_decay", 0.25}},
    {{"beta1", 0.0}, {"beta2", 0.0}, {"weight_decay", 0.0}}};

/// The new values of an optimizer whose norms are scalar operands: f(sample, param, gradient,
/// states) changes the states and returns the difference of the parameter.
using NormRule = std::function<double(const Sample& s, double param, double gradient,
                                      std::vector<double>& states)>;

OpTest norm_optimizer_test(const std::string& op, const std::vector<Attrs>& settings,
                           const NormRule& rule) {
  OpTest t;
  t.op = op;
  t.slack = 4;
  t.samples = optimizer_samples(op, settings);
  for (size_t i = 0; i < t.samples.size(); i += 4) {  // a norm of 0: the ratio is 1
    t.samples[i].inputs[t.samples[i].inputs.size() - 1 - i / 4 % 2] = scalar(0);
  }
  t.reference = [=](const Sample& s) {
    std::vector<Tensor> results = {s.inputs[0].copy()};
    for (size_t k = 0; k < static_cast<size_t>(states_of(op, {})); ++k) {
      results.push_back(s.inputs[4 + k].copy());
    }
    for (int64_t i = 0; i < s.inputs[0].numel(); ++i) {
      std::vector<double> state;
      for (size_t k = 1; k < results.size(); ++k) state.push_back(at(results[k], i));
      const auto e = static_cast<size_t>(i);
      results[0].as<double>()[e] -= rule(s, at(s.inputs[0], i), at(s.inputs[1], i), state);
      for (size_t k = 1; k < results.size(); ++k) results[k].as<double>()[e] = state[k - 1];
    }
    return results;
  };
  add_bad_operands(t, extra_operands(op, 2));
  return t;
}

OpTest lamb_test() {
  OpTest t = norm_optimizer_test(
      "lamb", kLambSettings,
      [](const Sample& s, double param, double gradient, std::vector<double>& state) {
        const double param_norm = at(s.inputs[6], 0), step_norm = at(s.inputs[7], 0);
        const double ratio = param_norm > 0 && step_norm > 0 ? param_norm / step_norm : 1;
        return at(s.inputs[2], 0) * ratio * lamb_step(s, param, gradient, state);
      });
  add_bad_factors(t, {"beta1", "beta2"});
  return t;
}

OpTest lamb_step_test() {
  OpTest t;
  t.op = "lamb_step";
  t.slack = 4;
  t.samples = optimizer_samples("lamb", kLambSettings);
  for (Sample& s : t.samples) s.inputs.resize(6);
  t.reference = [](const Sample& s) {
    Tensor step = s.inputs[0].copy();
    for (int64_t i = 0; i < step.numel(); ++i) {
      std::vector<double> state = {at(s.inputs[4], i), at(s.inputs[5], i)};
      step.as<double>()[static_cast<size_t>(i)] =
          lamb_step(s, at(s.inputs[0], i), at(s.inputs[1], i), state);
    }
    return std::vector{step};
  };
  add_bad_operands(t, extra_operands("lamb", 0));
  return t;
}

OpTest lars_test() {
  OpTest t = norm_optimizer_test(
      "lars", {{}, {{"momentum", 0.5}, {"trust_coefficient", 0.25}, {"weight_decay", 0.125}}},
      [](const Sample& s, double param, double gradient, std::vector<double>& state) {
        const double param_norm = at(s.inputs[5], 0), grad_norm = at(s.inputs[6], 0);
        const double decay = s.attrs.get_or("weight_decay", 0.0);
        const double trust = s.attrs.get_or("trust_coefficient", 0.001);
        const double ratio = param_norm > 0 && grad_norm > 0
                                 ? trust * param_norm / (grad_norm + decay * param_norm)
                                 : 1;
        return state[0] = s.attrs.get_or("momentum", 0.9) * state[0] +
                          at(s.inputs[2], 0) * ratio * (gradient + decay * param);
      });
  add_bad_setting(t, "momentum", -0.5, "must be a number of 0.0 or more, not -0.5");
  return t;
}

double muon_moment(const Sample& s, double gradient, double moment) {
  const double momentum = s.attrs.get_or("momentum", 0.95);
  return momentum * moment + (1 - momentum) * gradient;
}

const std::vector<Attrs> kMuonSettings = {
    {}, {{"momentum", 0.5}, {"nesterov", false}, {"weight_decay", 0.25}}};

OpTest muon_test() {
  OpTest t;
  t.op = "muon";
  t.samples = optimizer_samples("muon", kMuonSettings);
  t.slack = 4;
  t.reference = [](const Sample& s) {
    std::vector<Tensor> results = {s.inputs[0].copy(), s.inputs[4].copy()};
    const double lr = at(s.inputs[2], 0), decay = s.attrs.get_or("weight_decay", 0.1);
    for (int64_t i = 0; i < s.inputs[0].numel(); ++i) {
      const auto e = static_cast<size_t>(i);
      results[0].as<double>()[e] -= lr * (decay * at(s.inputs[0], i) + at(s.inputs[5], i));
      results[1].as<double>()[e] = muon_moment(s, at(s.inputs[1], i), at(s.inputs[4], i));
    }
    return results;
  };
  add_bad_operands(t, extra_operands("muon", 0));
  add_bad_factors(t, {"momentum"});
  const Type p = {f32, {3}, {}}, lr = {f32, {}, {}}, update = {i64, {}, {}};
  const auto bad = [&](const Type& tensor, const Attrs& attrs, const std::string& message) {
    t.bad.push_back({{p, p, lr, update, p, tensor}, attrs, "muon: " + message});
  };
  bad({f32, {4}, {}}, {}, "operand 5 must have the parameter's shape, got f32[4]");
  bad(p, {{"ns_steps", int64_t{100}}}, "attribute 'ns_steps' must lie in [1, 100), not be 100");
  bad(p, {{"adjust_lr", std::string("rms")}},
      "attribute 'adjust_lr' must be one of original, match_rms_adamw, spectral_unclamped, not "
      "'rms'");
  return t;
}

OpTest muon_momentum_test() {
  OpTest t;
  t.op = "muon_momentum";
  t.samples = optimizer_samples("muon", kMuonSettings);
  for (Sample& s : t.samples) s.inputs.resize(5);
  t.slack = 4;
  t.reference = [](const Sample& s) {
    Tensor result = s.inputs[0].copy();
    for (int64_t i = 0; i < result.numel(); ++i) {
      const double gradient = at(s.inputs[1], i);
      const double moment = muon_moment(s, gradient, at(s.inputs[4], i));
      const bool nesterov = s.attrs.get_or("nesterov", true);
      result.as<double>()[static_cast<size_t>(i)] =
          nesterov ? muon_moment(s, gradient, moment) : moment;
    }
    return std::vector{result};
  };
  add_bad_operands(t, {{f32, {3}, {}}});
  return t;
}

/// Takes the step that is its operand.
OpTest adafactor_test() {
  OpTest t;
  t.op = "adafactor";
  t.samples = optimizer_samples("adafactor", {{}, {{"weight_decay", 0.25}}});
  t.slack = 4;
  t.reference = [](const Sample& s) {
    Tensor result = s.inputs[0].copy();
    const double decay = at(s.inputs[2], 0) * s.attrs.get_or("weight_decay", 0.0);
    for (int64_t i = 0; i < result.numel(); ++i) {
      result.as<double>()[static_cast<size_t>(i)] -=
          decay * at(s.inputs[0], i) + at(s.inputs[4], i);
    }
    return std::vector{result};
  };
  add_bad_operands(t, extra_operands("adafactor", 0));
  add_bad_setting(t, "clip_threshold", 0.5, "must be a number of 1.0 or more, not 0.5");
  add_bad_setting(t, "decay_exponent", -1, "must be a number of 0.0 or more, not -1.0");
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

OpTest swa_update_test() {
  OpTest t;
  t.op = "swa_update";
  for (const auto& [start, every] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 2}}) {
    for (const int64_t updates : {0, 1, 2, 3, 4, 70}) {
      t.samples.push_back({{random_tensor({3, 5}), random_tensor({3, 5}, -2, 2, 1),
                            scalar(static_cast<double>(updates), i64)},
                           {{"start", start}, {"every", every}},
                           {}});
    }
  }
  t.samples.push_back(
      {{random_tensor({0}), random_tensor({0}), scalar(3, i64)}, {{"start", int64_t{1}}}, {}});
  t.reference = [](const Sample& s) {
    Tensor average = s.inputs[0].copy();
    const auto since = static_cast<int64_t>(at(s.inputs[2], 0)) + 1 - s.attrs.get<int64_t>("start");
    const int64_t every = s.attrs.get_or("every", int64_t{1});
    for (int64_t i = 0; i < average.numel(); ++i) {
      double& a = average.as<double>()[static_cast<size_t>(i)];
      const double p = at(s.inputs[1], i), n = std::floor(static_cast<double>(since / every));
      a = since <= 0 ? p : since % every == 0 ? (n * a + p) / (n + 1) : a;
    }
    return std::vector{average};
  };
  const Type p = {f32, {3}, {}}, update = {i64, {}, {}};
  t.bad = {{{p, p, update},
            {{"start", int64_t{0}}},
            "swa_update: attribute 'start' must be above 0, not 0"},
           {{{f32, {4}, {}}, p, update},
            {{"start", int64_t{1}}},
            "swa_update: the average of a parameter f32[3] cannot be f32[4]"}};
  return t;
}

OpTest lookahead_test() {
  OpTest t;
  t.op = "lookahead";
  for (const int64_t every : {1, 3}) {
    for (const int64_t updates : {0, 1, 2, 5, 70}) {
      t.samples.push_back(
          {{random_tensor({3, 5}), random_tensor({3, 5}, -2, 2, 1), random_tensor({3, 5}, -2, 2, 2),
            scalar(static_cast<double>(updates), i64)},
           {{"every", every}, {"alpha", 0.75}},
           {}});
    }
  }
  t.samples.push_back(
      {{random_tensor({0}), random_tensor({0}), random_tensor({0}), scalar(3, i64)}, {}, {}});
  t.reference = [](const Sample& s) {
    const auto updates = static_cast<int64_t>(at(s.inputs[3], 0));
    Tensor slow = s.inputs[updates == 0 ? 1 : 0].copy(), fast = s.inputs[2].copy();
    const bool moves = (updates + 1) % s.attrs.get_or("every", int64_t{5}) == 0;
    for (int64_t i = 0; moves && i < slow.numel(); ++i) {
      const auto e = static_cast<size_t>(i);
      slow.as<double>()[e] += s.attrs.get_or("alpha", 0.5) * (at(fast, i) - at(slow, i));
      fast.as<double>()[e] = at(slow, i);
    }
    return std::vector{fast, slow};
  };
  const Type p = {f32, {3}, {}}, update = {i64, {}, {}};
  t.bad = {{{p, p, p, update},
            {{"every", int64_t{0}}},
            "lookahead: attribute 'every' must be above 0, not 0"},
           {{p, p, p, p}, {}, "lookahead: the update counter must be an i64 scalar, got f32[3]"},
           {{{i64, {3}, {}}, p, p, update}, {}, "lookahead: expects float weights, got i64[3]"},
           {{p, {f32, {4}, {}}, p, update},
            {},
            "lookahead: operand 1 must be of the slow weights' type f32[3], got f32[4]"}};
  return t;
}

const AddOpTest kSwaUpdate(swa_update_test());
const AddOpTest kLookahead(lookahead_test());
const AddOpTest kEmaUpdate(ema_update_test());
const AddOpTest kSgd(optimizer_test("sgd", {{}, {{"weight_decay", 0.125}}},
                                    [](const Sample&, double gradient, std::vector<double>&) {
                                      return gradient;
                                    }));
const AddOpTest kAdagrad(adagrad_test());
const AddOpTest kMomentum(momentum_test());
const AddOpTest kAdam(adam_test("adam", /*decoupled=*/false));
const AddOpTest kAdamW(adam_test("adamw", /*decoupled=*/true));
const AddOpTest kAdamax(adamax_test());
const AddOpTest kRAdam(radam_test());
const AddOpTest kAdadelta(adadelta_test());
const AddOpTest kRmsProp(rmsprop_test());
const AddOpTest kLion(lion_test());
const AddOpTest kNAdam(nadam_test());
const AddOpTest kNAdamMuProduct(nadam_mu_product_test());
const AddOpTest kLamb(lamb_test());
const AddOpTest kLambStep(lamb_step_test());
const AddOpTest kLars(lars_test());
const AddOpTest kMuon(muon_test());
const AddOpTest kMuonMomentum(muon_momentum_test());
const AddOpTest kAdafactor(adafactor_test());

}  // namespace
}  // namespace fluid::testing::optim_samples
