#include <algorithm>
#include <cmath>

#include "tests/support/op_harness.h"

namespace fluid::testing::metric_samples {
namespace {

Tensor vector_of(const std::vector<double>& elements) {
  return Tensor::of<double>({std::ssize(elements)}, std::span(elements));
}

/// Integers in [0, end).
Tensor classes(Extents shape, double end, DType dtype = i64) {
  Tensor t = random_tensor(std::move(shape), 0, end, 5);
  for (double& v : t.as<double>()) v = std::floor(v);
  return t.cast(dtype);
}

/// Few different values, so that scores tie.
Tensor tied(Extents shape) { return classes(std::move(shape), 3).cast(f64); }

OpTest metric_test() {
  OpTest t;
  t.op = "metric";
  t.samples = {{{random_tensor({}), random_tensor({})}, {}, {}}};
  t.reference = [](const Sample& s) {
    return std::vector{vector_of({s.inputs[0].at(0), s.inputs[1].at(0)})};
  };
  const std::string expects = "metric: expects two float scalars of one type, got ";
  t.bad = {{{{f32, {2}, {}}, {f32, {2}, {}}}, {}, expects + "f32[2] and f32[2]"},
           {{{f32, {}, {}}, {f64, {}, {}}}, {}, expects + "f32[] and f64[]"},
           {{{i64, {}, {}}, {i64, {}, {}}}, {}, expects + "i64[] and i64[]"}};
  return t;
}

OpTest top_k_test() {
  OpTest t;
  t.op = "top_k_accuracy";
  const auto k = [](int64_t n) { return Attrs{{"k", n}}; };
  t.samples = {{{random_tensor({23, 7}), classes({23}, 7)}, {}, {}},
               {{random_tensor({3, 5, 4}), classes({3, 5}, 4, i32)}, k(2), {}},
               {{tied({37, 6}), classes({37}, 6, u8)}, k(3), {0, 0}},
               {{random_tensor({0, 3}), classes({0}, 3)}, k(3), {}}};
  t.reference = [](const Sample& s) {
    const Tensor &x = s.inputs[0], &label = s.inputs[1];
    const int64_t count = x.shape().back(), k = s.attrs.get_or<int64_t>("k", 5);
    double hits = 0;
    for (int64_t row = 0; row < label.numel(); ++row) {
      const auto own = static_cast<int64_t>(label.at(row));
      int64_t before = 0;  // classes whose score comes first
      for (int64_t c = 0; c < count; ++c) {
        const double score = x.at(row * count + c), own_score = x.at(row * count + own);
        before += score > own_score || (score == own_score && c < own) ? 1 : 0;
      }
      hits += before < k ? 1 : 0;
    }
    return std::vector{vector_of({hits, static_cast<double>(label.numel())})};
  };
  const Type x = {f32, {2, 3}, {}}, label = {i64, {2}, {}};
  t.bad = {{{x, label}, k(0), "top_k_accuracy: attribute 'k' is 0, but f32[2, 3] has 3 classes"},
           {{x, label}, k(4), "top_k_accuracy: attribute 'k' is 4, but f32[2, 3] has 3 classes"},
           {{x, x},
            {},
            "top_k_accuracy: expects integer labels [2] for rows f32[2, 3], got "
            "f32[2, 3]"}};
  return t;
}

std::vector<Tensor> confusion_matrix(const Sample& s) {
  const Tensor &x = s.inputs[0], &label = s.inputs[1];
  const bool scores_of_1 = x.shape() == label.shape();
  const int64_t count = scores_of_1 ? 2 : x.shape().back();
  Tensor matrix(f64, {count, count});
  for (int64_t row = 0; row < label.numel(); ++row) {
    int64_t best = 0;
    if (scores_of_1) {
      best = x.at(row) > s.attrs.get_or("threshold", 0.0) ? 1 : 0;
    } else {
      for (int64_t c = 1; c < count; ++c) {
        if (x.at(row * count + c) > x.at(row * count + best)) best = c;
      }
    }
    at(matrix, static_cast<int64_t>(label.at(row)) * count + best) += 1;
  }
  return {matrix};
}

OpTest confusion_test(const std::string& op) {
  OpTest t;
  t.op = op;
  t.samples = {{{random_tensor({37, 4}), classes({37}, 4)}, {}, {}},
               {{tied({5, 3, 3}), classes({5, 3}, 3, u8)}, {{"average", std::string("micro")}}, {}},
               {{random_tensor({23}), classes({23}, 2)},
                {{"average", std::string("binary")}, {"threshold", 0.5}},
                {0, 0}},
               {{random_tensor({0, 3}), classes({0}, 3)}, {}, {}}};
  t.reference = confusion_matrix;
  const Type x = {f32, {2, 3}, {}}, label = {i64, {2}, {}};
  const auto average = [](const char* name) { return Attrs{{"average", std::string(name)}}; };
  t.bad = {{{x, label},
            average("mean"),
            op + ": attribute 'average' is 'mean', which is not binary, micro, macro or weighted"},
           {{x, label},
            average("binary"),
            op + ": average 'binary' needs two classes, but f32[2, 3] has 3"},
           {{{f32, {3}, {}}, label},
            {},
            op + ": expects scores [..., C] or scores [2] of class 1 for integer labels, got "
                 "f32[3] and i64[2]"}};
  return t;
}

OpTest error_test(const std::string& op, double (*error)(double)) {
  OpTest t;
  t.op = op;
  t.samples = {{{random_tensor({23}), random_tensor({23}, -2, 2, 1)}, {}, {0, 0}},
               {{random_tensor({3, 1, 7}), random_tensor({3, 1, 7}, -2, 2, 1)}, {}, {}},
               {{random_tensor({}), random_tensor({}, -2, 2, 1)}, {}, {}},
               {{random_tensor({0, 3}), random_tensor({0, 3})}, {}, {}}};
  t.reference = [error](const Sample& s) {
    double sum = 0;
    const int64_t n = s.inputs[0].numel();
    for (int64_t i = 0; i < n; ++i) sum += error(s.inputs[0].at(i) - s.inputs[1].at(i));
    return std::vector{vector_of({sum, static_cast<double>(n)})};
  };
  t.slack = 4;
  const std::string expects = op + ": expects predictions and targets of one float type, got ";
  t.bad = {{{{f32, {2}, {}}, {f32, {3}, {}}}, {}, expects + "f32[2] and f32[3]"},
           {{{i64, {2}, {}}, {i64, {2}, {}}}, {}, expects + "i64[2] and i64[2]"}};
  return t;
}

OpTest r2_test() {
  OpTest t;
  t.op = "r2_score";
  t.samples = {{{random_tensor({23}), random_tensor({23}, -2, 2, 1)}, {}, {0, 0}},
               {{random_tensor({11, 3, 2}), random_tensor({11, 3, 2}, -2, 2, 1)}, {}, {}},
               {{random_tensor({0, 3}), random_tensor({0, 3})}, {}, {}}};
  t.reference = [](const Sample& s) {
    const Tensor &y = s.inputs[0], &target = s.inputs[1];
    int64_t outputs = 1;
    for (size_t d = 1; d < y.shape().size(); ++d) outputs *= y.shape()[d];
    std::vector<double> sums(static_cast<size_t>(3 * outputs));
    for (int64_t i = 0; i < y.numel(); ++i) {
      const int64_t column = i % outputs;
      const auto add = [&](int64_t kind, double x) {
        sums[static_cast<size_t>(kind * outputs + column)] += x;
      };
      add(0, std::pow(y.at(i) - target.at(i), 2));
      add(1, target.at(i));
      add(2, std::pow(target.at(i), 2));
    }
    sums.push_back(static_cast<double>(y.shape()[0]));
    return std::vector{vector_of(sums)};
  };
  t.slack = 4;
  t.bad = {
      {{{f32, {}, {}}, {f32, {}, {}}}, {}, "r2_score: expects predictions [N, D...], got f32[]"},
      {{{f32, {2}, {}}, {f64, {2}, {}}},
       {},
       "r2_score: expects predictions and targets of one float type, got f32[2] and f64[2]"}};
  return t;
}

OpTest perplexity_test() {
  OpTest t;
  t.op = "perplexity";
  const Attrs ignore_1 = {{"ignore_index", std::vector<int64_t>{1}}};
  t.samples = {{{random_tensor({23, 7}), classes({23}, 7)}, {}, {0, 0}},
               {{random_tensor({3, 5, 4}), classes({3, 5}, 4, i32)}, ignore_1, {}},
               {{random_tensor({0, 3}), classes({0}, 3)}, {}, {}}};
  t.reference = [](const Sample& s) {
    const Tensor &x = s.inputs[0], &label = s.inputs[1];
    const auto ignored = s.attrs.get_or("ignore_index", std::vector<int64_t>());
    const int64_t count = x.shape().back();
    double sum = 0, rows = 0;
    for (int64_t row = 0; row < label.numel(); ++row) {
      const auto own = static_cast<int64_t>(label.at(row));
      if (std::ranges::find(ignored, own) != ignored.end()) continue;
      double total = 0;
      for (int64_t c = 0; c < count; ++c) total += std::exp(x.at(row * count + c));
      sum += std::log(total) - x.at(row * count + own);
      rows += 1;
    }
    return std::vector{vector_of({sum, rows})};
  };
  t.slack = 4;
  const Type x = {f32, {2, 3}, {}}, label = {i64, {2}, {}};
  t.bad = {
      {{x, label},
       {{"ignore_index", std::vector<int64_t>{0, 1}}},
       "perplexity: attribute 'ignore_index' holds at most one label"},
      {{x, x}, {}, "perplexity: expects integer labels [2] for rows f32[2, 3], got f32[2, 3]"}};
  return t;
}

OpTest roc_auc_test() {
  OpTest t;
  t.op = "roc_auc";
  t.samples = {{{random_tensor({23}), classes({23}, 2)}, {}, {0, 0}},
               {{random_tensor({1}), classes({1}, 2, u8)}, {}, {0, 0}},
               {{random_tensor({11, 3}), classes({11}, 3)}, {{"classes", int64_t{3}}}, {0, 0}}};
  t.reference = [](const Sample& s) {
    const int64_t samples = s.inputs[1].numel(), scores = s.inputs[0].numel() / samples;
    Tensor rows(f64, {samples, scores + 1});
    for (int64_t i = 0; i < samples; ++i) {
      for (int64_t c = 0; c < scores; ++c) {
        at(rows, i * (scores + 1) + c) = s.inputs[0].at(i * scores + c);
      }
      at(rows, i * (scores + 1) + scores) = s.inputs[1].at(i);
    }
    return std::vector{rows};
  };
  const std::string expects =
      "roc_auc: expects float scores [N] and integer labels [N] with one element per sample of the "
      "batch, got ";
  t.bad = {{{{f32, {2}, {}}, {i64, {2}, {}}}, {}, expects + "f32[2] and i64[2]"},
           {{{f32, {kBatch}, {}}, {i64, {kBatch, 1}, {}}}, {}, expects + "f32[?] and i64[?, 1]"},
           {{{f32, {kBatch, 2}, {}}, {i64, {kBatch}, {}}},
            {{"classes", int64_t{3}}},
            "roc_auc: expects float scores [N, 3] and integer labels [N] with one element per "
            "sample of the batch, got f32[?, 2] and i64[?]"},
           {{{f32, {kBatch}, {}}, {i64, {kBatch}, {}}},
            {{"classes", int64_t{1}}},
            "roc_auc: attribute 'classes' is 1, less than 2"}};
  return t;
}

const AddOpTest kMetric(metric_test());
const AddOpTest kTopK(top_k_test());
const AddOpTest kPrecision(confusion_test("precision"));
const AddOpTest kRecall(confusion_test("recall"));
const AddOpTest kF1(confusion_test("f1_score"));
const AddOpTest kMse(error_test("mean_squared_error", [](double d) { return d * d; }));
const AddOpTest kRmse(error_test("root_mean_squared_error", [](double d) { return d * d; }));
const AddOpTest kMae(error_test("mean_absolute_error", [](double d) { return std::abs(d); }));
const AddOpTest kR2(r2_test());
const AddOpTest kPerplexity(perplexity_test());
const AddOpTest kRocAuc(roc_auc_test());

}  // namespace
}  // namespace fluid::testing::metric_samples
