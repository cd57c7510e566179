// Rounding, remainders, signs, bounds, and the kinds of floats.

#include <cmath>

#include "tests/support/op_harness.h"
#include "tests/support/scalar_program.h"

namespace fluid::testing::rounding_samples {
namespace {

/// Integers, multiples of 0.5 and their neighbours, large numbers, infinities and NaN.
Tensor special_values() {
  return Tensor::of<double>(
      {21}, {{-INFINITY,    -8388609, -3,   -2.5, -1.5, -1,  -0.75, -0.5,    -0.0,     0,  0x1p-30,
              0.4990234375, 0.5,      0.75, 1,    1.5,  2.5, 3,     8388609, INFINITY, NAN}});
}

/// An op whose gradient is 0: the harness could not tell it from a wrong one. PyTorch's results
/// (tests/golden/ops.py) check it.
OpTest step_test(const std::string& op, double (*f)(double)) {
  OpTest t = unary_test(op, f, -8, 8);
  t.samples.push_back({{special_values()}, {}, {}});
  t.gradient = false;
  t.bad = {{{{i64, {3}, {}}}, {}, op + ": the operand must be a float tensor, not i64[3]"}};
  return t;
}

std::vector<Tensor> whole_numbers(DType dtype, const std::vector<std::vector<double>>& lists) {
  std::vector<Tensor> tensors;
  for (const std::vector<double>& list : lists) {
    const auto n = static_cast<int64_t>(list.size());
    tensors.push_back(Tensor::of<double>({n}, list).cast(dtype));
  }
  return tensors;
}

OpTest sign_test() {
  OpTest t = step_test("sign", [](double x) { return static_cast<double>((x > 0) - (x < 0)); });
  t.samples.push_back({whole_numbers(i32, {{-30000, 0, 7}}), {}, {}});
  t.samples.push_back({whole_numbers(u8, {{0, 200}}), {}, {}});
  t.bad = {{{{boolean, {3}, {}}}, {}, "sign: the operand must be a numeric tensor, not bool[3]"}};
  return t;
}

OpTest reciprocal_test() {
  OpTest t = unary_test(
      "reciprocal", [](double x) { return std::pow(x, -1); }, 0.5, 2);
  t.bad = {{{{i64, {3}, {}}}, {}, "reciprocal: the operand must be a float tensor, not i64[3]"}};
  return t;
}

OpTest mod_test() {
  OpTest t = binary_test("mod", floored_remainder);
  t.bad = {{{{boolean, {3}, {}}, {boolean, {3}, {}}},
            {},
            "mod: operand 0 must be a numeric tensor, not bool[3]"},
           {{{f32, {3}, {}}, {i32, {3}, {}}},
            {},
            "mod: operands of different dtypes, f32[3] and i32[3]: cast one of them"}};
  return t;
}

/// Exact multiples, divisors 0 and infinity, quotients that no float represents, and integers.
OpTest special_mod_test() {
  OpTest t = mod_test();
  const std::vector<std::vector<double>> numbers = {{-7, 7, -6, 6, 5, -5, 0},
                                                    {3, -3, 3, -3, 7, 7, 4}};
  t.samples = {{{Tensor::of<double>({9}, {{3, -3, 3, -3, INFINITY, NAN, 1, 1, 0}}),
                 Tensor::of<double>(
                     {9}, {{INFINITY, INFINITY, -INFINITY, -INFINITY, 2, 2, NAN, 0, INFINITY}})},
                {},
                {}},
               {{Tensor::of<double>({7}, {{1e9, 1e38, 1e10, -1e38, 65504, 1e-40, -3e4}}),
                 Tensor::of<double>({7}, {{3, 0.001, 0.75, 7, 0.25, 3e-45, 1e-7}})},
                {},
                {}},
               {whole_numbers(f64, numbers), {}, {}},
               {whole_numbers(i64, numbers), {}, {}},
               {whole_numbers(i32, numbers), {}, {}},
               {whole_numbers(u8, {{7, 200, 0}, {3, 7, 5}}), {}, {}}};
  t.bad = {};
  t.gradient = false;
  return t;
}

OpTest clip_test() {
  OpTest t;
  t.op = "clip";
  const Attrs both = {{"min", -1.0}, {"max", 0.5}}, crossed = {{"min", 1.0}, {"max", -1.0}};
  for (const Attrs& attrs : {both, Attrs{{"min", 0.0}}, Attrs{{"max", 0.0}}}) {
    for (const Sample& s : unary_samples()) t.samples.push_back({s.inputs, attrs, s.batch_dims});
  }
  const Attrs whole = {{"min", -3.0}, {"max", 7.0}};
  t.samples.push_back({{random_tensor({5})}, crossed, {}});
  t.samples.push_back({{random_tensor({37}, -2, 3)}, whole, {}});
  t.reference = [](const Sample& s) {
    return std::vector{map_elements(s.inputs, [&](const auto& x) {
      const double low = s.attrs.get_or<double>("min", -INFINITY);
      const double high = s.attrs.get_or<double>("max", INFINITY);
      const double raised = x[0] < low ? low : x[0];
      return raised > high ? high : raised;
    })};
  };
  t.bad = {
      {{{boolean, {3}, {}}}, both, "clip: the operand must be a numeric tensor, not bool[3]"},
      {{{f32, {3}, {}}}, {}, "clip: needs attribute 'min', attribute 'max' or both"},
      {{{f32, {3}, {}}}, {{"min", NAN}}, "clip: attribute 'min' must not be nan"},
      {{{f32, {3}, {}}}, {{"max", NAN}}, "clip: attribute 'max' must not be nan"},
      {{{u8, {3}, {}}}, {{"min", -1.0}}, "clip: attribute 'min' is not representable in u8: -1.0"},
      {{{i32, {3}, {}}}, {{"max", 0.5}}, "clip: attribute 'max' is not representable in i32: 0.5"}};
  return t;
}

OpTest special_clip_test() {
  OpTest t = clip_test();
  t.samples = {{{special_values()}, {{"min", -1.0}, {"max", 3.0}}, {}},
               {{special_values()}, {{"min", -1.0}}, {}},
               {{special_values()}, {{"max", 3.0}}, {}},
               {whole_numbers(i64, {{-9, -3, 0, 7, 9}}), {{"min", -3.0}, {"max", 7.0}}, {}}};
  t.bad = {};
  t.gradient = false;
  return t;
}

OpTest predicate_test(const std::string& op, bool (*f)(double x, const Attrs& attrs),
                      std::vector<Attrs> options = {}) {
  OpTest t;
  t.op = op;
  t.samples = unary_samples();
  options.insert(options.begin(), Attrs());
  for (const Attrs& attrs : options) t.samples.push_back({{special_values()}, attrs, {}});
  t.reference = [f](const Sample& s) {
    const auto holds = [&](const std::vector<double>& x) { return f(x[0], s.attrs); };
    return std::vector{map_elements(s.inputs, holds, boolean)};
  };
  t.bad = {{{{i64, {3}, {}}}, {}, op + ": the operand must be a float tensor, not i64[3]"}};
  return t;
}

bool is_nan(double x, const Attrs&) { return std::isnan(x); }

bool is_inf(double x, const Attrs& attrs) {
  return std::isinf(x) && attrs.get_or(x > 0 ? "detect_positive" : "detect_negative", true);
}

const AddOpTest kCeil(step_test("ceil", [](double x) { return std::ceil(x); }));
const AddOpTest kFloor(step_test("floor", [](double x) { return std::floor(x); }));
const AddOpTest kRound(step_test("round", [](double x) { return std::nearbyint(x); }));
const AddOpTest kTrunc(step_test("trunc", [](double x) { return std::trunc(x); }));
const AddOpTest kSign(sign_test());
const AddOpTest kReciprocal(reciprocal_test());
const AddOpTest kMod(mod_test());
const AddOpTest kSpecialMod(special_mod_test());
const AddOpTest kClip(clip_test());
const AddOpTest kSpecialClip(special_clip_test());
const AddOpTest kIsNan(predicate_test("is_nan", is_nan));
const AddOpTest kIsInf(predicate_test("is_inf", is_inf,
                                      {{{"detect_positive", false}},
                                       {{"detect_negative", false}},
                                       {{"detect_positive", false}, {"detect_negative", false}}}));

}  // namespace
}  // namespace fluid::testing::rounding_samples
