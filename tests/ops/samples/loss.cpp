#include <algorithm>
#include <cmath>

#include "tests/support/op_harness.h"

namespace fluid::testing::loss_samples {
namespace {

/// exp(x) / sum(exp(x)) along attribute "axis" (the last one by default), or its logarithm.
Tensor softmax_of(const Sample& s, bool logarithm) {
  const Tensor& x = s.inputs[0];
  const Extents& shape = x.shape();
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t given = s.attrs.get_or<int64_t>("axis", -1);
  const int64_t axis = given < 0 ? given + rank : given;
  int64_t inner = 1;
  for (int64_t d = axis + 1; d < rank; ++d) inner *= shape[static_cast<size_t>(d)];
  const int64_t n = shape[static_cast<size_t>(axis)];
  Tensor y(f64, shape);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t first = i / (inner * n) * inner * n + i % inner;
    long double total = 0;
    for (int64_t k = 0; k < n; ++k) total += std::exp(x.at(first + k * inner));
    const double share = static_cast<double>(std::exp(x.at(i)) / total);
    at(y, i) = logarithm ? std::log(share) : share;
  }
  return y;
}

OpTest softmax_test(const std::string& op, bool logarithm) {
  OpTest t;
  t.op = op;
  t.samples = {
      {{random_tensor({3, 5})}, {}, {}}, {{random_tensor({2, 3, 5})}, {{"axis", int64_t{1}}}, {}},
      {{random_tensor({1})}, {}, {}},    {{random_tensor({1, 1})}, {}, {}},
      {{random_tensor({0, 3})}, {}, {}}, {{random_tensor({37})}, {{"axis", int64_t{0}}}, {}},
      {{random_tensor({3, 0})}, {}, {}}, {{random_tensor({7, 10})}, {}, {0}}};
  t.reference = [logarithm](const Sample& s) { return std::vector{softmax_of(s, logarithm)}; };
  t.slack = 4;
  t.bad = {{{{f32, {2}, {}}}, {{"axis", int64_t{1}}}, op + ": there is no axis 1 in f32[2]"},
           {{{i32, {2}, {}}}, {}, op + ": expects a float tensor, got i32[2]"}};
  return t;
}

/// Classes in [low, high) of any integer dtype.
Tensor labels(Extents shape, double low, double high, DType dtype = i64) {
  Tensor t = random_tensor(std::move(shape), low, high, 5);
  for (double& v : t.as<double>()) v = std::floor(v);
  return t.cast(dtype);
}

/// Rows and their labels, in all integer dtypes.
std::vector<Sample> labelled_samples() {
  return {{{random_tensor({3, 5}), labels({3}, 0, 5)}, {}, {}},
          {{random_tensor({5}), labels({}, 0, 5)}, {}, {}},
          {{random_tensor({37, 1}), labels({37}, 0, 1, u8)}, {}, {}},
          {{random_tensor({0, 3}), labels({0}, 0, 3, u8)}, {}, {}},
          {{random_tensor({2, 3, 4}), labels({2, 3}, 0, 4, i32)}, {}, {}},
          {{random_tensor({7, 10}), labels({7}, 0, 10)}, {}, {0, 0}},
          {{random_tensor({1, 10}), labels({1}, 0, 10)}, {}, {0, 0}}};
}

/// Labels of which some name no class.
std::vector<Sample> mislabelled_samples() {
  return {{{random_tensor({23, 5}), labels({23}, -3, 9)}, {}, {}},
          {{random_tensor({23, 5}), labels({23}, -3, 9, i32)}, {}, {0, 0}}};
}

/// f(row's first position, classes, label) of every row.
template <class F>
Tensor by_row(const Sample& s, F f) {
  const Tensor& label = s.inputs[1];
  Tensor y(f64, label.shape());
  const int64_t classes = s.inputs[0].shape().back();
  for (int64_t i = 0; i < y.numel(); ++i) {
    at(y, i) = f(i * classes, classes, static_cast<int64_t>(label.at(i)));
  }
  return y;
}

std::vector<Tensor> cross_entropy(const Sample& s) {
  return {by_row(s, [&](int64_t first, int64_t classes, int64_t label) {
    long double total = 0;
    for (int64_t k = 0; k < classes; ++k) total += std::exp(s.inputs[0].at(first + k));
    const double x = s.inputs[0].at(first + std::clamp<int64_t>(label, 0, classes - 1));
    return static_cast<double>(std::log(total)) - x;
  })};
}

std::vector<Tensor> correct_and_rows(const Sample& s) {
  Tensor statistics(f64, {2});
  by_row(s, [&](int64_t first, int64_t classes, int64_t label) {
    int64_t best = 0;
    for (int64_t k = 1; k < classes; ++k) {
      if (s.inputs[0].at(first + k) > s.inputs[0].at(first + best)) best = k;
    }
    at(statistics, 0) += best == label ? 1 : 0;
    at(statistics, 1) += 1;
    return 0.0;
  });
  return {statistics};
}

using Reference = std::vector<Tensor> (*)(const Sample&);

OpTest labelled_test(const std::string& op, Reference reference) {
  OpTest t;
  t.op = op;
  t.samples = labelled_samples();
  t.reference = reference;
  t.slack = 4;
  const Type x = {f32, {2, 3}, {}};
  t.bad = {
      {{x, {i64, {3}, {}}}, {}, op + ": expects integer labels [2] for rows f32[2, 3], got i64[3]"},
      {{x, {f32, {2}, {}}}, {}, op + ": expects integer labels [2] for rows f32[2, 3], got f32[2]"},
      {{{f32, {}, {}}, {i64, {}, {}}}, {}, op + ": expects float rows [..., C], got f32[]"},
      {{{f32, {2, 0}, {}}, {i64, {2}, {}}}, {}, op + ": rows of zero classes: f32[2, 0]"}};
  return t;
}

OpTest mislabelled_test(const std::string& op, Reference reference) {
  OpTest t;
  t.op = op;
  t.samples = mislabelled_samples();
  t.reference = reference;
  t.gradient = false;
  t.slack = 4;
  return t;
}

OpTest accuracy_test() {
  OpTest t = labelled_test("accuracy", correct_and_rows);
  Tensor ties = random_tensor({17, 4}, 0, 3);
  for (double& v : ties.as<double>()) v = std::floor(v);
  t.samples.push_back({{ties, labels({17}, 0, 2)}, {}, {}});
  return t;
}

OpTest one_hot_test() {
  OpTest t;
  t.op = "one_hot";
  const auto to = [](Shape shape) { return Attrs{{"to", Type{f64, std::move(shape), {}}}}; };
  t.samples = {
      {{labels({3}, 0, 5)}, to({3, 5}), {}},    {{labels({}, 0, 5, i32)}, to({5}), {}},
      {{labels({0}, 0, 5)}, to({0, 5}), {}},    {{labels({2, 3}, 0, 1, u8)}, to({2, 3, 1}), {}},
      {{labels({37}, -3, 9)}, to({37, 7}), {}}, {{labels({7}, 0, 10)}, to({kBatch, 10}), {0}}};
  t.reference = [](const Sample& s) {
    Extents shape = s.inputs[0].shape();
    const int64_t classes = s.attrs.get<Type>("to").shape.back().size;
    shape.push_back(classes);
    Tensor y(f64, shape);
    for (int64_t i = 0; i < s.inputs[0].numel(); ++i) {
      const auto label = static_cast<int64_t>(s.inputs[0].at(i));
      if (label >= 0 && label < classes) at(y, i * classes + label) = 1;
    }
    return std::vector{y};
  };
  t.bad = {{{{i64, {2}, {}}},
            to({}),
            "one_hot: attribute 'to' must be a float type [..., C], not f64[]"},
           {{{i64, {2}, {}}},
            to({3, 4}),
            "one_hot: expects integer labels [3] for f64[3, 4], got i64[2]"}};
  return t;
}

const AddOpTest kSoftmax(softmax_test("softmax", false));
const AddOpTest kLogSoftmax(softmax_test("log_softmax", true));
const AddOpTest kCrossEntropyOutside(mislabelled_test("softmax_cross_entropy", cross_entropy));
const AddOpTest kAccuracy(accuracy_test());
const AddOpTest kAccuracyOutside(mislabelled_test("accuracy", correct_and_rows));
const AddOpTest kOneHot(one_hot_test());

}  // namespace
}  // namespace fluid::testing::loss_samples
