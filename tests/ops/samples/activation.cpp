#include <cmath>

#include "tests/support/op_harness.h"

namespace fluid::testing::activation_samples {
namespace {

/// Kinks, saturated ranges, infinities and NaN.
Tensor special_values() {
  return Tensor::of<double>({17}, {{-100, -20.5, -6, -3, -1, -0.0, 0, 0.125, 1, 3, 6, 20, 20.5, 100,
                                    INFINITY, -INFINITY, NAN}});
}

/// The activation `f` of an element and the sample's attributes.
using Activation = double (*)(double x, const Attrs& attrs);

OpTest activation_test(const std::string& op, Activation f, std::vector<Attrs> options = {}) {
  OpTest t;
  t.op = op;
  options.insert(options.begin(), Attrs());
  for (const Attrs& attrs : options) {
    for (const Sample& s : unary_samples(-8, 8))
      t.samples.push_back({s.inputs, attrs, s.batch_dims});
  }
  t.reference = [f](const Sample& s) {
    return std::vector{map_elements(s.inputs, [&](const auto& x) { return f(x[0], s.attrs); })};
  };
  t.bad = {{{{i64, {3}, {}}}, {}, op + ": the operand must be a float tensor, not i64[3]"}};
  return t;
}

/// The test at special values, which have no finite differences.
OpTest special_test(OpTest t) {
  std::vector<Sample> samples;
  for (const Sample& s : t.samples) {
    if (s.inputs[0].shape().empty()) samples.push_back({{special_values()}, s.attrs, {}});
  }
  t.samples = samples;
  t.bad = {};
  t.gradient = false;
  return t;
}

double clamped(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

double relu6(double x, const Attrs&) { return clamped(x, 0, 6); }

double leaky_relu(double x, const Attrs& attrs) {
  return x * (x > 0 ? 1 : attrs.get_or("negative_slope", 0.01));
}

double elu(double x, const Attrs& attrs) {
  return x > 0 ? x : attrs.get_or("alpha", 1.0) * (std::exp(x) - 1);
}

double selu(double x, const Attrs&) {
  return 1.0507009873554804934 * (x > 0 ? x : 1.6732632423543772848 * (std::exp(x) - 1));
}

double celu(double x, const Attrs& attrs) {
  const double alpha = attrs.get_or("alpha", 1.0);
  return x > 0 ? x : alpha * (std::exp(x / alpha) - 1);
}

double silu(double x, const Attrs&) { return x / (1 + std::exp(-x)); }

double mish(double x, const Attrs&) { return x * std::tanh(std::log(1 + std::exp(x))); }

double softplus(double x, const Attrs& attrs) {
  const double beta = attrs.get_or("beta", 1.0);
  const bool linear = beta * x > attrs.get_or("threshold", 20.0);
  return linear ? x : std::log(1 + std::exp(beta * x)) / beta;
}

double softsign(double x, const Attrs&) { return x < 0 ? x / (1 - x) : x / (1 + x); }

double hard_sigmoid(double x, const Attrs& attrs) {
  return clamped(attrs.get_or("alpha", 1.0 / 6) * x + attrs.get_or("beta", 0.5), 0, 1);
}

double hard_swish(double x, const Attrs&) { return x * clamped(x + 3, 0, 6) / 6; }

double log_sigmoid(double x, const Attrs&) { return -std::log(1 + std::exp(-x)); }

/// Adds the mistake that a number is not finite.
OpTest with_finite(OpTest t, const std::string& attr, double value, const std::string& text) {
  t.bad.push_back({{{f32, {3}, {}}},
                   {{attr, value}},
                   t.op + ": attribute '" + attr + "' must be finite, not " + text});
  return t;
}

OpTest celu_test() {
  OpTest t = with_finite(activation_test("celu", celu, {{{"alpha", 2.5}}}), "alpha", NAN, "nan");
  t.bad.push_back({{{f32, {3}, {}}}, {{"alpha", 0.0}}, "celu: attribute 'alpha' must not be 0"});
  return t;
}

OpTest softplus_test() {
  OpTest t = activation_test("softplus", softplus,
                             {{{"beta", 2.0}, {"threshold", 5.0}}, {{"beta", -0.5}}});
  t.bad.push_back({{{f32, {3}, {}}}, {{"beta", 0.0}}, "softplus: attribute 'beta' must not be 0"});
  t.bad.push_back(
      {{{f32, {3}, {}}}, {{"threshold", NAN}}, "softplus: attribute 'threshold' must not be nan"});
  return with_finite(t, "beta", NAN, "nan");
}

OpTest hard_sigmoid_test() {
  OpTest t = activation_test("hard_sigmoid", hard_sigmoid, {{{"alpha", 0.2}, {"beta", 0.75}}});
  t.bad.push_back(
      {{{f32, {3}, {}}}, {{"alpha", 0.0}}, "hard_sigmoid: attribute 'alpha' must be positive"});
  return with_finite(with_finite(t, "alpha", INFINITY, "inf"), "beta", NAN, "nan");
}

OpTest prelu_test() {
  OpTest t;
  t.op = "prelu";
  t.samples = {{{random_tensor({3, 5}), random_tensor({5}, -1, 1, 1)}, {}, {}},
               {{random_tensor({2, 3, 5}), random_tensor({3}, -1, 1, 1)}, {}, {}},
               {{random_tensor({2, 3, 1, 7}), random_tensor({1}, -1, 1, 1)}, {}, {}},
               {{random_tensor({37}), random_tensor({}, -1, 1, 1)}, {}, {}},
               {{random_tensor({}), random_tensor({}, -1, 1, 1)}, {}, {}},
               {{random_tensor({1}), random_tensor({1}, -1, 1, 1)}, {}, {}},
               {{random_tensor({0, 3}), random_tensor({3}, -1, 1, 1)}, {}, {}},
               {{random_tensor({7, 3, 2}), random_tensor({3}, -1, 1, 1)}, {}, {0}}};
  t.reference = [](const Sample& s) {
    const Tensor &x = s.inputs[0], &weight = s.inputs[1];
    int64_t inner = 1;
    for (size_t d = 2; d < x.shape().size(); ++d) inner *= x.shape()[d];
    Tensor y = x.copy();
    for (int64_t i = 0; i < y.numel(); ++i) {
      const double slope = weight.at(i / inner % weight.numel());
      at(y, i) = x.at(i) > 0 ? x.at(i) : slope * x.at(i);
    }
    return std::vector{y};
  };
  const std::string wanted = " is neither one number nor one per channel (axis 1) of ";
  t.bad = {
      {{{i64, {3}, {}}, {i64, {1}, {}}}, {}, "prelu: operand 0 must be a float tensor, not i64[3]"},
      {{{f32, {3}, {}}, {f64, {1}, {}}},
       {},
       "prelu: operands of different dtypes, f32[3] and f64[1]: cast one of them"},
      {{{f32, {4, 3, 5}, {}}, {f32, {5}, {}}},
       {},
       "prelu: the weight f32[5]" + wanted + "f32[4, 3, 5]"},
      {{{f32, {3}, {}}, {f32, {3}, {}}}, {}, "prelu: the weight f32[3]" + wanted + "f32[3]"}};
  return t;
}

OpTest special_prelu_test() {
  OpTest t = prelu_test();
  t.samples = {{{special_values(), Tensor::of<double>({}, {{0.25}})}, {}, {}}};
  t.bad = {};
  t.gradient = false;
  return t;
}

const OpTest kTests[] = {
    activation_test("relu6", relu6),
    with_finite(activation_test("leaky_relu", leaky_relu,
                                {{{"negative_slope", 0.3}}, {{"negative_slope", -0.5}}}),
                "negative_slope", NAN, "nan"),
    with_finite(activation_test("elu", elu, {{{"alpha", 0.5}}}), "alpha", -INFINITY, "-inf"),
    activation_test("selu", selu),
    celu_test(),
    activation_test("silu", silu),
    activation_test("mish", mish),
    softplus_test(),
    activation_test("softsign", softsign),
    hard_sigmoid_test(),
    activation_test("hard_swish", hard_swish),
    activation_test("log_sigmoid", log_sigmoid)};

const bool kAdded = [] {
  for (const OpTest& t : kTests) {
    AddOpTest{t};
    AddOpTest{special_test(t)};
  }
  return true;
}();
const AddOpTest kPrelu(prelu_test());
const AddOpTest kSpecialPrelu(special_prelu_test());

}  // namespace
}  // namespace fluid::testing::activation_samples
