#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/support/op_harness.h"

namespace fluid::testing::reduce_samples {
namespace {

using Row = std::vector<double>;
using List = std::vector<int64_t>;

std::vector<int64_t> axes_of(const Sample& s) {
  const int64_t rank = static_cast<int64_t>(s.inputs[0].shape().size());
  std::vector<int64_t> axes;
  if (s.attrs.has("axis")) axes = {s.attrs.get<int64_t>("axis")};
  if (s.attrs.has("axes")) axes = s.attrs.get<std::vector<int64_t>>("axes");
  for (int64_t& a : axes) a += a < 0 ? rank : 0;
  const bool all = axes.empty();
  for (int64_t d = 0; all && d < rank; ++d) axes.push_back(d);
  return axes;
}

/// f of the elements that go into each result, in row-major order.
Tensor reduced(const Sample& s, const std::function<double(const Row&)>& f, DType dtype = f64) {
  const Tensor& x = s.inputs[0];
  const std::vector<int64_t> axes = axes_of(s);
  std::vector<int64_t> shape, strides(x.shape().size(), 0);
  int64_t results = 1;
  const auto gone = [&](size_t d) {
    return std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
  };
  for (size_t d = x.shape().size(); d-- > 0;) {
    if (gone(d)) continue;
    strides[d] = results;
    results *= x.shape()[d];
  }
  for (size_t d = 0; d < x.shape().size(); ++d) {
    if (!gone(d)) shape.push_back(x.shape()[d]);
    if (gone(d) && s.attrs.get_or("keep_dims", false)) shape.push_back(1);
  }
  std::vector<Row> groups(static_cast<size_t>(results));
  for (int64_t i = 0; i < x.numel(); ++i) {
    int64_t rest = i, at = 0;
    for (size_t d = x.shape().size(); d-- > 0;) {
      at += rest % x.shape()[d] * strides[d];
      rest /= x.shape()[d];
    }
    groups[static_cast<size_t>(at)].push_back(x.at(i));
  }
  Tensor out(f64, shape);
  for (size_t i = 0; i < groups.size(); ++i) out.as<double>()[i] = f(groups[i]);
  return dtype == f64 ? out : out.cast(dtype);
}

std::vector<Sample> samples(bool empty) {
  const auto attrs = [](std::vector<int64_t> axes, bool keep = false) {
    return Attrs{{"axes", std::move(axes)}, {"keep_dims", keep}};
  };
  std::vector<Sample> list = {{{random_tensor({3, 5})}, {}, {}},
                              {{random_tensor({})}, {}, {}},
                              {{random_tensor({1})}, {}, {}},
                              {{random_tensor({37})}, attrs({0}), {}},
                              {{random_tensor({3, 5})}, attrs({0}), {}},
                              {{random_tensor({3, 5})}, attrs({-1}, true), {}},
                              {{random_tensor({2, 3, 5})}, attrs({0, 2}, true), {}},
                              {{random_tensor({2, 3, 5})}, attrs({1}), {}},
                              {{random_tensor({0, 3})}, attrs({1}), {}},
                              {{random_tensor({1, 1})}, attrs({0}, true), {}},
                              {{random_tensor({7, 3})}, attrs({0}), {0}},
                              {{random_tensor({7, 3})}, {}, {0}}};
  if (empty) list.push_back({{random_tensor({0, 3})}, attrs({0}), {}});
  return list;
}

OpTest reduction(std::string op, const std::function<double(const Row&)>& f, bool empty) {
  OpTest t;
  t.op = std::move(op);
  t.samples = samples(empty);
  t.reference = [f](const Sample& s) { return std::vector{reduced(s, f)}; };
  t.bad = {{{{f32, {2, 3}, {}}},
            {{"axes", std::vector<int64_t>{2}}},
            t.op + ": axis 2 is out of range for f32[2, 3] of rank 2"},
           {{{f32, {2, 3}, {}}},
            {{"axes", std::vector<int64_t>{1, -1}}},
            t.op + ": axis 1 is given twice"}};
  if (!empty) {
    t.bad.push_back({{{f32, {2, 0}, {}}}, {}, t.op + ": no elements along axis 1 of f32[2, 0]"});
  }
  return t;
}

double total(const Row& x) {
  long double sum = 0;
  for (const double v : x) sum += v;
  return static_cast<double>(sum);
}

double product(const Row& x) {
  long double product = 1;
  for (const double v : x) product *= v;
  return static_cast<double>(product);
}

double largest(const Row& x) { return *std::max_element(x.begin(), x.end()); }
double smallest(const Row& x) { return *std::min_element(x.begin(), x.end()); }
double first_largest(const Row& x) {
  return static_cast<double>(std::max_element(x.begin(), x.end()) - x.begin());
}
double average(const Row& x) { return total(x) / static_cast<double>(x.size()); }

OpTest sum_test() {
  OpTest t = reduction("sum", total, true);
  Tensor bits(boolean, {3, 5});
  for (const size_t i : {0, 3, 4, 11}) bits.as<bool>()[i] = true;
  t.samples.push_back({{bits}, {}, {}});
  t.samples.push_back({{bits}, {{"axes", std::vector<int64_t>{1}}}, {}});
  return t;
}

/// Rows without a zero, with one and with two.
OpTest prod_test() {
  OpTest t = reduction("prod", product, true);
  Tensor zeros = random_tensor({3, 5}, 0.5, 2);
  for (const int64_t i : {6, 12, 14}) at(zeros, i) = 0;
  for (const std::vector<int64_t>& axes : {List{}, List{0}, List{1}, List{-1, 0}}) {
    t.samples.push_back({{zeros}, {{"axes", axes}}, {}});
  }
  Tensor bits(boolean, {3, 5});
  for (const size_t i : {0, 1, 2, 3, 4, 11}) bits.as<bool>()[i] = true;
  t.samples.push_back({{bits}, {{"axes", List{1}}}, {}});
  return t;
}

OpTest max_index_test() {
  OpTest t = reduction("max_index", {}, false);
  t.reference = [](const Sample& s) {
    return std::vector{reduced(s, largest), reduced(s, first_largest, i64)};
  };
  return t;
}

OpTest sum_squares_test() {
  OpTest t = reduction(
      "sum_squares",
      [](const Row& x) { return std::inner_product(x.begin(), x.end(), x.begin(), 0.0); }, true);
  t.bad = {{{{i64, {2}, {}}}, {}, "sum_squares: expects a float tensor, got i64[2]"}};
  return t;
}

OpTest count_nonfinite_test() {
  OpTest t = reduction("count_nonfinite", {}, true);
  Tensor odd(f64, {2, 3});
  odd.as<double>()[0] = INFINITY;
  odd.as<double>()[2] = NAN;
  odd.as<double>()[5] = -INFINITY;
  t.samples.push_back({{odd}, {}, {}});
  t.samples.push_back({{odd}, {{"axes", std::vector<int64_t>{1}}}, {}});
  t.reference = [](const Sample& s) {
    const auto count = [](const Row& x) {
      return static_cast<double>(
          std::ranges::count_if(x, [](double v) { return !(std::abs(v) < INFINITY); }));
    };
    return std::vector{reduced(s, count, f32)};
  };
  t.bad = {{{{i64, {2}, {}}}, {}, "count_nonfinite: expects a float tensor, got i64[2]"}};
  return t;
}

double first_smallest(const Row& x) {
  return static_cast<double>(std::min_element(x.begin(), x.end()) - x.begin());
}

/// `f` returns the index of the extremum of finite elements; the first NaN goes before it.
OpTest arg_extremum_test(const std::string& op, double (*f)(const Row&)) {
  OpTest t;
  t.op = op;
  Tensor ties(f64, {3, 4});
  ties.as<double>()[2] = ties.as<double>()[3] = 1;
  ties.as<double>()[5] = ties.as<double>()[6] = -1;
  Tensor odd = random_tensor({4, 5});
  for (const int64_t i : {3, 4, 7}) at(odd, i) = NAN;
  for (const int64_t i : {5, 11}) at(odd, i) = INFINITY;
  for (const int64_t i : {8, 13, 14}) at(odd, i) = -INFINITY;
  t.samples = {{{random_tensor({3, 5})}, {{"axis", int64_t{-1}}}, {}},
               {{random_tensor({3, 5})}, {{"axis", int64_t{0}}, {"keep_dims", true}}, {}},
               {{ties}, {{"axis", int64_t{1}}}, {}},
               {{odd}, {{"axis", int64_t{1}}}, {}},
               {{random_tensor({5, 7}, 0, 200).cast(u8)}, {{"axis", int64_t{0}}}, {}},
               {{random_tensor({5, 7}, -9, 9).cast(i32)}, {}, {}},
               {{random_tensor({0, 3})}, {{"axis", int64_t{1}}}, {}},
               {{random_tensor({7, 10})}, {{"axis", int64_t{1}}}, {0}},
               {{random_tensor({1})}, {{"axis", int64_t{0}}}, {}}};
  t.reference = [f](const Sample& given) {
    Sample s = given;
    if (!s.attrs.has("axis")) s.attrs.set("axis", int64_t{-1});
    const auto index = [f](const Row& x) {
      const auto nan = std::ranges::find_if(x, [](double v) { return std::isnan(v); });
      return nan == x.end() ? f(x) : static_cast<double>(nan - x.begin());
    };
    return std::vector{reduced(s, index, i64)};
  };
  t.bad = {{{{f32, {2, 3}, {}}},
            {{"axis", int64_t{-3}}},
            op + ": axis -3 is out of range for f32[2, 3] of rank 2"},
           {{{f32, {0}, {}}}, {}, op + ": no elements along axis 0 of f32[0]"}};
  return t;
}

/// A reduction of floats alone.
OpTest float_reduction(const std::string& op, const std::function<double(const Row&)>& f) {
  OpTest t = reduction(op, f, true);
  t.bad.push_back({{{i64, {2}, {}}}, {}, op + ": the operand must be a float tensor, not i64[2]"});
  t.slack = 4;
  return t;
}

double l1(const Row& x) {
  long double sum = 0;
  for (const double v : x) sum += std::abs(v);
  return static_cast<double>(sum);
}

double l2(const Row& x) {
  long double sum = 0;
  for (const double v : x) sum += v * v;
  return static_cast<double>(std::sqrt(sum));
}

OpTest norm_test(const std::string& op, double (*f)(const Row&)) {
  OpTest t = float_reduction(op, f);
  t.samples.push_back({{random_tensor({3, 7}, -90, 90)}, {{"axes", List{1}}}, {}});
  return t;
}

/// Zeros, NaN and infinities.
OpTest norm_values_test(const std::string& op, double (*f)(const Row&)) {
  OpTest t = float_reduction(op, f);
  Tensor odd = random_tensor({5, 3});
  at(odd, 4) = NAN;
  at(odd, 8) = INFINITY;
  at(odd, 9) = -INFINITY;
  for (const int64_t i : {12, 13, 14}) at(odd, i) = 0;
  t.samples = {{{odd}, {{"axes", List{1}}}, {}}};
  t.bad = {};
  t.gradient = false;
  return t;
}

double log_sum_exp(const Row& x) {
  if (x.empty()) return -INFINITY;
  const double top = *std::ranges::max_element(x);
  if (std::ranges::any_of(x, [](double v) { return std::isnan(v); })) return NAN;
  if (std::isinf(top)) return top;
  long double sum = 0;
  for (const double v : x) sum += std::exp(v - top);
  return static_cast<double>(std::log(sum)) + top;
}

OpTest logsumexp_test() {
  OpTest t = float_reduction("logsumexp", log_sum_exp);
  t.samples.push_back({{random_tensor({3, 7}, -900, 900)}, {{"axes", List{1}}}, {}});
  return t;
}

OpTest logsumexp_values_test() {
  OpTest t = float_reduction("logsumexp", log_sum_exp);
  Tensor odd = random_tensor({6, 3});
  at(odd, 1) = NAN;
  at(odd, 3) = INFINITY;
  for (const int64_t i : {7, 9, 10, 11, 13}) at(odd, i) = -INFINITY;
  at(odd, 14) = INFINITY;
  for (const int64_t i : {15, 16}) at(odd, i) = INFINITY;
  t.samples = {{{odd}, {{"axes", List{1}}}, {}}, {{odd}, {{"axes", List{0}}}, {}}};
  t.bad = {};
  t.gradient = false;
  return t;
}

/// Variance with the divisor max(0, n - correction).
double variance(const Row& x, int64_t correction) {
  const long double mean = total(x) / static_cast<long double>(x.size());
  long double squares = 0;
  for (const double v : x) squares += (v - mean) * (v - mean);
  const auto n = static_cast<int64_t>(x.size());
  return static_cast<double>(squares /
                             static_cast<long double>(std::max<int64_t>(0, n - correction)));
}

OpTest variance_test(const std::string& op, double (*of_variance)(double)) {
  OpTest t = float_reduction(op, {});
  const std::vector<Sample> plain = samples(false);
  t.samples.clear();
  for (const int64_t correction : {0, 1, 2}) {
    for (Sample s : plain) {
      s.attrs.set("correction", correction);
      t.samples.push_back(s);
    }
  }
  t.samples.push_back({{random_tensor({3, 7}, 900, 1100)}, {{"axes", List{1}}}, {}});
  t.reference = [of_variance](const Sample& s) {
    const auto correction = s.attrs.get_or<int64_t>("correction", 1);
    return std::vector{
        reduced(s, [=](const Row& x) { return of_variance(variance(x, correction)); })};
  };
  t.bad.push_back({{{f32, {3}, {}}},
                   {{"correction", INT64_MIN}},
                   op + ": attribute 'correction' must lie between -9007199254740992 and "
                        "9007199254740992, not be -9223372036854775808"});
  t.slack = 16;
  return t;
}

double same(double v) { return v; }
double root(double v) { return std::sqrt(v); }

/// The elements as 0 and 1.
OpTest logical_reduction(const std::string& op, double (*f)(const Row&)) {
  OpTest t;
  t.op = op;
  const auto bools = [](Extents shape, int64_t period) {
    Tensor x(boolean, std::move(shape));
    for (size_t i = 0; i < static_cast<size_t>(x.numel()); ++i) {
      x.as<bool>()[i] = period > 0 && static_cast<int64_t>(i) % period != 0;
    }
    return x;
  };
  const Attrs rows = {{"axes", List{1}}}, columns = {{"axes", List{0}}, {"keep_dims", true}};
  for (const int64_t period : {0, 1, 4, 99}) {
    t.samples.push_back({{bools({5, 3}, period)}, rows, {}});
    t.samples.push_back({{bools({5, 3}, period)}, columns, {}});
    t.samples.push_back({{bools({37}, period)}, {}, {}});
    t.samples.push_back({{bools({7, 3}, period)}, {{"axes", List{-2}}}, {0}});
  }
  t.samples.push_back({{bools({2, 3, 5}, 7)}, {{"axes", List{0, 2}}}, {}});
  t.samples.push_back({{bools({0, 3}, 2)}, {}, {}});
  t.samples.push_back({{bools({3, 0}, 2)}, rows, {}});
  t.samples.push_back({{bools({}, 2)}, {}, {}});
  t.reference = [f](const Sample& s) { return std::vector{reduced(s, f, boolean)}; };
  t.bad = {{{{i32, {2}, {}}}, {}, op + ": the operand must be a bool tensor, not i32[2]"},
           {{{boolean, {2}, {}}},
            {{"axes", List{1}}},
            op + ": axis 1 is out of range for bool[2] of rank 1"}};
  return t;
}

double any_of(const Row& x) { return total(x) > 0 ? 1 : 0; }
double all_of(const Row& x) { return total(x) == static_cast<double>(x.size()) ? 1 : 0; }

const AddOpTest kSum(sum_test());
const AddOpTest kProd(prod_test());
const AddOpTest kMean(reduction("mean", average, true));
const AddOpTest kMax(reduction("max", largest, false));
const AddOpTest kMin(reduction("min", smallest, false));
const AddOpTest kMaxIndex(max_index_test());
const AddOpTest kSumSquares(sum_squares_test());
const AddOpTest kCountNonfinite(count_nonfinite_test());
const AddOpTest kArgmax(arg_extremum_test("argmax", first_largest));
const AddOpTest kArgmin(arg_extremum_test("argmin", first_smallest));
const AddOpTest kNormL1(norm_test("norm_l1", l1));
const AddOpTest kNormL1Values(norm_values_test("norm_l1", l1));
const AddOpTest kNormL2(norm_test("norm_l2", l2));
const AddOpTest kNormL2Values(norm_values_test("norm_l2", l2));
const AddOpTest kLogsumexp(logsumexp_test());
const AddOpTest kLogsumexpValues(logsumexp_values_test());
const AddOpTest kVar(variance_test("var", same));
const AddOpTest kStd(variance_test("std", root));
const AddOpTest kAny(logical_reduction("any", any_of));
const AddOpTest kAll(logical_reduction("all", all_of));

}  // namespace
}  // namespace fluid::testing::reduce_samples
