#include <cmath>
#include <complex>

#include "tests/support/op_harness.h"

namespace fluid::testing::math_samples {
namespace {

OpTest neg_test() {
  OpTest t = unary_test("neg", [](double x) { return -x; });
  t.bad = {{{{boolean, {3}, {}}}, {}, "neg: the operand must be a numeric tensor, not bool[3]"}};
  return t;
}

/// A map that takes integers as well as floats.
OpTest number_test(const std::string& op, double (*f)(double)) {
  OpTest t = unary_test(op, f);
  for (const DType dtype : {i32, i64}) {
    Tensor ints(f64, {3});
    ints.as<double>()[0] = -30000;
    ints.as<double>()[2] = 7;
    t.samples.push_back({{ints.cast(dtype)}, {}, {}});
  }
  t.bad = {{{{boolean, {3}, {}}}, {}, op + ": the operand must be a numeric tensor, not bool[3]"}};
  return t;
}

OpTest add_test() {
  OpTest t = binary_test("add", [](double a, double b) { return a + b; });
  Tensor ints(i64, {3});
  ints.as<int64_t>()[1] = int64_t{1} << 60;
  t.samples.push_back({{ints, ints}, {}, {}});
  t.bad = {{{{f32, {kBatch, 2}, {}}, {f32, {3}, {}}},
            {},
            "add: cannot broadcast f32[?, 2] and f32[3]: dimension 1 is both 2 and 3"},
           {{{f32, {kBatch}, {}}, {f32, {4}, {}}},
            {},
            "add: cannot broadcast f32[?] and f32[4]: dimension 0 is both ? and 4"},
           {{{f32, {}, {}}, {f64, {}, {}}},
            {},
            "add: operands of different dtypes, f32[] and f64[]: cast one of them"}};
  return t;
}

using Complex = std::complex<double>;

Complex unit_circle(double angle) { return std::exp(Complex(0, angle)); }

OpTest float_test(const std::string& op, double (*f)(double), double low = -2, double high = 2) {
  OpTest t = unary_test(op, f, low, high);
  t.bad = {{{{i64, {3}, {}}}, {}, op + ": the operand must be a float tensor, not i64[3]"}};
  return t;
}

/// Has arguments of several periods, too.
OpTest periodic_test(const std::string& op, double (*f)(double)) {
  OpTest t = float_test(op, f);
  t.samples.push_back({{random_tensor({37}, -30, 30)}, {}, {}});
  return t;
}

OpTest is_finite_test() {
  OpTest t = unary_test("is_finite", {});
  Tensor odd(f64, {4});
  odd.as<double>()[0] = INFINITY;
  odd.as<double>()[1] = NAN;
  odd.as<double>()[2] = -INFINITY;
  t.samples.push_back({{odd}, {}, {}});
  t.reference = [](const Sample& s) {
    const auto finite = [](const std::vector<double>& x) { return std::abs(x[0]) < INFINITY; };
    return std::vector{map_elements(s.inputs, finite, boolean)};
  };
  return t;
}

OpTest pow_test() {
  OpTest t = binary_test(
      "pow", [](double a, double b) { return std::pow(a, b); }, 0.5, 2);
  Tensor base(f64, {3}), exponent(f64, {3});
  const std::vector<double> bases = {1.5, 2, 3}, exponents = {2, -1, 0};
  for (size_t i = 0; i < 3; ++i) {
    base.as<double>()[i] = bases[i];
    exponent.as<double>()[i] = exponents[i];
  }
  t.samples.push_back({{base, exponent}, {}, {}});
  t.slack = 4;
  return t;
}

const AddOpTest kNeg(neg_test());
const AddOpTest kAbs(number_test("abs", [](double x) { return x < 0 ? -x : x; }));
const AddOpTest kSquare(number_test("square", [](double x) { return x * x; }));
const AddOpTest kSqrt(unary_test(
    "sqrt", [](double x) { return std::pow(x, 0.5); }, 0.1, 4));
const AddOpTest kRsqrt(unary_test(
    "rsqrt", [](double x) { return std::pow(x, -0.5); }, 0.1, 4));
const AddOpTest kExp(unary_test("exp", [](double x) { return std::pow(M_E, x); }));
const AddOpTest kExpm1(unary_test("expm1", [](double x) { return std::exp(x) - 1; }));
const AddOpTest kLog(unary_test(
    "log", [](double x) { return std::log2(x) * M_LN2; }, 0.1, 4));
const AddOpTest kLog2(float_test(
    "log2", [](double x) { return std::log(x) / M_LN2; }, 0.1, 4));
const AddOpTest kExp2(float_test("exp2", [](double x) { return std::exp(x * M_LN2); }));
const AddOpTest kLog1p(unary_test(
    "log1p", [](double x) { return std::log(1 + x); }, -0.5, 4));
const AddOpTest kErf(unary_test("erf", [](double x) { return 1 - std::erfc(x); }));
const AddOpTest kSigmoid(unary_test("sigmoid",
                                    [](double x) { return std::exp(x) / (1 + std::exp(x)); }));
const AddOpTest kTanh(unary_test("tanh", [](double x) { return 1 - 2 / (std::exp(2 * x) + 1); }));
const AddOpTest kSin(periodic_test("sin", [](double x) { return unit_circle(x).imag(); }));
const AddOpTest kCos(periodic_test("cos", [](double x) { return unit_circle(x).real(); }));
const AddOpTest kTan(float_test(
    "tan", [](double x) { return unit_circle(x).imag() / unit_circle(x).real(); }, -1.25, 1.25));
const AddOpTest kAsin(float_test(
    "asin", [](double x) { return std::atan2(x, std::sqrt(1 - x * x)); }, -0.95, 0.95));
const AddOpTest kAcos(float_test(
    "acos", [](double x) { return std::atan2(std::sqrt(1 - x * x), x); }, -0.95, 0.95));
const AddOpTest kAtan(float_test("atan", [](double x) { return std::arg(Complex(1, x)); }));
const AddOpTest kSinh(float_test("sinh",
                                 [](double x) { return (std::exp(x) - std::exp(-x)) / 2; }));
const AddOpTest kCosh(float_test("cosh",
                                 [](double x) { return (std::exp(x) + std::exp(-x)) / 2; }));
const AddOpTest kIsFinite(is_finite_test());

const AddOpTest kAdd(add_test());
const AddOpTest kSub(binary_test("sub", [](double a, double b) { return a - b; }));
const AddOpTest kMul(binary_test("mul", [](double a, double b) { return a * b; }));
const AddOpTest kDiv(binary_test(
    "div", [](double a, double b) { return a / b; }, 0.5, 2));
const AddOpTest kMaximum(binary_test("maximum", [](double a, double b) { return a > b ? a : b; }));
const AddOpTest kMinimum(binary_test("minimum", [](double a, double b) { return a < b ? a : b; }));
const AddOpTest kPow(pow_test());

}  // namespace
}  // namespace fluid::testing::math_samples
