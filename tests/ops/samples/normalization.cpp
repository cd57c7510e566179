// Normalisations that need no running statistics, against their formulas in double.

#include <cmath>

#include "tests/support/op_harness.h"

namespace fluid::testing::normalization_samples {
namespace {

/// Elements that share their statistics: element i of x belongs to set set(i) of `sets`.
struct Partition {
  int64_t sets = 0;
  std::function<int64_t(int64_t)> set;
  std::function<int64_t(int64_t)> scale;  ///< index into scale and bias
  Extents statistics;                     ///< shape of the statistics
};

/// Results of a normalisation: y, mean (if `centred`) and rstd.
std::vector<Tensor> normalised(const Sample& s, const Partition& p, bool centred) {
  const Tensor& x = s.inputs[0];
  const auto sets = static_cast<size_t>(p.sets);
  std::vector<long double> count(sets), mean(sets), square(sets);
  const auto set = [&](int64_t i) { return static_cast<size_t>(p.set(i)); };
  for (int64_t i = 0; i < x.numel(); ++i) {
    count[set(i)] += 1;
    mean[set(i)] += x.at(i);
  }
  for (size_t k = 0; k < sets; ++k) mean[k] = centred ? mean[k] / count[k] : 0;
  for (int64_t i = 0; i < x.numel(); ++i) square[set(i)] += std::pow(x.at(i) - mean[set(i)], 2);
  Tensor y(f64, x.shape()), means(f64, p.statistics), rstd(f64, p.statistics);
  for (size_t k = 0; k < sets; ++k) {
    const double eps = s.attrs.get_or("eps", 1e-5);
    at(means, static_cast<int64_t>(k)) = static_cast<double>(mean[k]);
    at(rstd, static_cast<int64_t>(k)) =
        static_cast<double>(1 / std::sqrt(square[k] / count[k] + eps));
  }
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double xhat = static_cast<double>(x.at(i) - mean[set(i)]) * rstd.at(p.set(i));
    const double scale = s.inputs.size() > 1 ? s.inputs[1].at(p.scale(i)) : 1;
    const double bias = s.inputs.size() > 2 ? s.inputs[2].at(p.scale(i)) : 0;
    at(y, i) = xhat * scale + bias;
  }
  if (!centred) return {y, rstd};
  return {y, means, rstd};
}

int64_t product(const Extents& shape, size_t begin, size_t end) {
  int64_t n = 1;
  for (size_t d = begin; d < end; ++d) n *= shape[d];
  return n;
}

Partition trailing(const Sample& s) {
  const Extents& shape = s.inputs[0].shape();
  const int64_t axis = s.attrs.get_or<int64_t>("axis", -1);
  const auto first =
      static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
  const int64_t n = product(shape, first, shape.size());
  Extents statistics = shape;
  for (size_t d = first; d < shape.size(); ++d) statistics[d] = 1;
  return {product(shape, 0, first), [n](int64_t i) { return i / n; },
          [n](int64_t i) { return i % n; }, statistics};
}

Partition grouped(const Sample& s, int64_t groups) {
  const Extents& shape = s.inputs[0].shape();
  const int64_t channels = shape[1], inner = product(shape, 2, shape.size());
  const int64_t n = groups == 0 ? 0 : channels / groups * inner;
  return {shape[0] * groups,
          [n](int64_t i) { return i / n; },
          [=](int64_t i) { return i / inner % channels; },
          {shape[0], groups}};
}

/// A sample of x and `parameters` of the operands scale and bias.
Sample sample(const Extents& x, const Extents& scale, size_t parameters, Attrs attrs = {},
              std::vector<int> batch = {}, double low = -2, double high = 2) {
  Sample s{{random_tensor(x, low, high)}, std::move(attrs), std::move(batch)};
  if (parameters > 0) s.inputs.push_back(random_tensor(scale, 0.5, 2, 1));
  if (parameters > 1) s.inputs.push_back(random_tensor(scale, -1, 1, 2));
  return s;
}

Attrs axis(int64_t a) { return {{"axis", a}}; }

std::vector<Sample> trailing_samples(size_t most) {
  return {sample({3, 5}, {}, 0),
          sample({3, 5}, {5}, most),
          sample({2, 3, 4}, {3, 4}, 1, axis(1)),
          sample({2, 3, 4}, {2, 3, 4}, most, axis(-3)),
          sample({7, 13}, {13}, most, {{"eps", 0.25}}, {0}),
          sample({3, 7, 2}, {2}, most, axis(2), {1}),
          sample({37}, {37}, most, axis(0)),
          sample({1}, {1}, most, {{"eps", 0.5}}),
          sample({0, 3}, {3}, most),
          sample({3, 0}, {0}, most),
          sample({5, 7}, {7}, most, {}, {}, 900, 1100)};
}

OpTest trailing_test(const std::string& op, bool centred) {
  OpTest t;
  t.op = op;
  t.samples = trailing_samples(centred ? 2 : 1);
  t.reference = [centred](const Sample& s) { return normalised(s, trailing(s), centred); };
  t.slack = 16;
  const Type x = {f32, {4, 3}, {}}, half = {f16, {4, 3}, {}};
  t.bad = {{{{i32, {3}, {}}}, {}, op + ": expects a float tensor, got i32[3]"},
           {{x}, axis(2), op + ": there is no axis 2 in f32[4, 3]"},
           {{{f32, {kBatch, 3}, {}}},
            axis(-2),
            op + ": axis -2 normalises over the batch dimension of f32[?, 3]"},
           {{x, {f32, {4}, {}}},
            {},
            op + ": operand 1 must be f32[3], the normalised dimensions of x, got f32[4]"},
           {{half, {f64, {3}, {}}},
            {},
            op + ": operand 1 must be f32[3], the normalised dimensions of x, got f64[3]"},
           {{x}, {{"eps", -1.0}}, op + ": attribute 'eps' must not be negative"}};
  return t;
}

/// NaN and infinity spread over their row alone.
OpTest nonfinite_rows(const std::string& op, bool centred) {
  OpTest t;
  t.op = op;
  Sample s = sample({4, 5}, {5}, 1);
  at(s.inputs[0], 2) = NAN;
  at(s.inputs[0], 8) = INFINITY;
  at(s.inputs[0], 12) = -INFINITY;
  t.samples = {s};
  t.reference = [centred](const Sample& given) {
    return normalised(given, trailing(given), centred);
  };
  t.gradient = false;
  t.slack = 16;
  return t;
}

OpTest group_norm_test() {
  OpTest t;
  t.op = "group_norm";
  const auto groups = [](int64_t n) { return Attrs{{"groups", n}}; };
  t.samples = {sample({2, 6, 3, 2}, {6}, 2, groups(3)),
               sample({3, 4}, {4}, 1, groups(2)),
               sample({2, 5, 7}, {5}, 0, groups(1)),
               sample({7, 4, 3}, {4}, 2, {{"groups", int64_t{2}}, {"eps", 0.25}}, {0}),
               sample({2, 3, 5}, {3}, 2, groups(3)),
               sample({0, 4, 3}, {4}, 2, groups(2)),
               sample({1, 1, 1}, {1}, 2, {{"groups", int64_t{1}}, {"eps", 0.5}}),
               sample({2, 0, 3}, {0}, 2, groups(2)),
               sample({2, 4, 11}, {4}, 2, groups(2), {}, 900, 1100)};
  t.reference = [](const Sample& s) {
    return normalised(s, grouped(s, s.attrs.get<int64_t>("groups")), true);
  };
  t.slack = 16;
  const Type x = {f32, {4, 6, 5}, {}};
  t.bad = {{{{f32, {3}, {}}}, groups(1), "group_norm: expects a float [N, C, ...], got f32[3]"},
           {{{f32, {3, kBatch}, {}}},
            groups(1),
            "group_norm: expects a float [N, C, ...], got f32[3, ?]"},
           {{x}, groups(4), "group_norm: 4 groups do not divide the 6 channels of f32[4, 6, 5]"},
           {{x}, groups(0), "group_norm: 0 groups do not divide the 6 channels of f32[4, 6, 5]"},
           {{x, {f32, {5}, {}}},
            groups(2),
            "group_norm: operand 1 must be f32[6], one number per channel, got f32[5]"}};
  return t;
}

OpTest instance_norm_test() {
  OpTest t;
  t.op = "instance_norm";
  t.samples = {sample({2, 3, 4, 2}, {3}, 2),
               sample({2, 3, 7}, {3}, 0),
               sample({7, 2, 5}, {2}, 1, {{"eps", 0.25}}, {0}),
               sample({0, 4, 3}, {4}, 2),
               sample({2, 0, 3}, {0}, 2),
               sample({1, 1, 1}, {1}, 2, {{"eps", 0.5}})};
  t.reference = [](const Sample& s) {
    return normalised(s, grouped(s, s.inputs[0].shape()[1]), true);
  };
  t.slack = 16;
  t.bad = {
      {{{f32, {3, 4}, {}}}, {}, "instance_norm: expects a float [N, C, L, ...], got f32[3, 4]"},
      {{{f32, {3, 4, 2}, {}}, {f32, {3}, {}}},
       {},
       "instance_norm: operand 1 must be f32[4], one number per channel, got f32[3]"}};
  return t;
}

Tensor lrn_of(const Sample& s) {
  const Tensor& x = s.inputs[0];
  const int64_t channels = x.shape()[1], inner = product(x.shape(), 2, x.shape().size());
  const int64_t size = s.attrs.get<int64_t>("size");
  const double alpha = s.attrs.get_or("alpha", 1e-4), beta = s.attrs.get_or("beta", 0.75);
  Tensor y(f64, x.shape());
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t c = i / inner % channels;
    double squares = 0;
    for (int64_t k = c - size / 2; k < c - size / 2 + size; ++k) {
      if (k >= 0 && k < channels) squares += std::pow(x.at(i + (k - c) * inner), 2);
    }
    const double base = s.attrs.get_or("k", 1.0) + alpha * squares / static_cast<double>(size);
    at(y, i) = x.at(i) / std::pow(base, beta);
  }
  return y;
}

OpTest lrn_test() {
  OpTest t;
  t.op = "lrn";
  const auto attrs = [](int64_t size, double alpha = 0.5) {
    return Attrs{{"size", size}, {"alpha", alpha}};
  };
  t.samples = {{{random_tensor({2, 7, 3, 2})}, attrs(3), {}},
               {{random_tensor({2, 5, 3})}, attrs(4), {}},
               {{random_tensor({7, 3})},
                {{"size", int64_t{5}}, {"alpha", 0.5}, {"beta", 0.5}, {"k", 2.0}},
                {0}},
               {{random_tensor({1, 1, 1})}, attrs(1), {}},
               {{random_tensor({2, 3, 5})}, attrs(2), {}},
               {{random_tensor({0, 3, 5})}, attrs(3), {}},
               {{random_tensor({2, 0, 5})}, attrs(3), {}},
               {{random_tensor({2, 5, 3}, -200, 200)}, attrs(5, 1e-4), {}}};
  t.reference = [](const Sample& s) { return std::vector{lrn_of(s)}; };
  t.slack = 8;
  t.bad = {{{{f32, {3}, {}}}, attrs(3), "lrn: expects a float [N, C, ...], got f32[3]"},
           {{{f32, {3, 4}, {}}},
            attrs(0),
            "lrn: attribute 'size' must lie between 1 and 32768, not be 0"},
           {{{f32, {3, 4}, {}}},
            attrs(1000000000000),
            "lrn: attribute 'size' must lie between 1 and 32768, not be 1000000000000"}};
  for (const char* name : {"alpha", "beta", "k"}) {
    t.bad.push_back({{{f32, {3, 4}, {}}},
                     {{"size", int64_t{3}}, {name, NAN}},
                     "lrn: attribute '" + std::string(name) + "' must be finite, not nan"});
  }
  return t;
}

Tensor lp_normalised(const Sample& s) {
  const Tensor& x = s.inputs[0];
  const Extents& shape = x.shape();
  const int64_t given = s.attrs.get_or<int64_t>("axis", -1);
  const auto axis =
      static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(shape.size()) : given);
  const int64_t inner = product(shape, axis + 1, shape.size()), n = shape[axis];
  const bool l1 = s.attrs.get_or<int64_t>("p", 2) == 1;
  Tensor y(f64, shape);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t first = i / (inner * n) * inner * n + i % inner;
    double norm = 0;
    for (int64_t k = 0; k < n; ++k) {
      const double v = x.at(first + k * inner);
      norm += l1 ? std::abs(v) : v * v;
    }
    norm = l1 ? norm : std::sqrt(norm);
    at(y, i) =
        x.at(i) / (norm < s.attrs.get_or("eps", 1e-12) ? s.attrs.get_or("eps", 1e-12) : norm);
  }
  return y;
}

OpTest lp_normalize_test() {
  OpTest t;
  t.op = "lp_normalize";
  for (const int64_t p : {1, 2}) {
    const auto attrs = [p](int64_t a) { return Attrs{{"p", p}, {"axis", a}}; };
    const Attrs wide = {{"p", p}, {"eps", 5.0}};
    t.samples.push_back({{random_tensor({3, 5})}, attrs(-1), {}});
    t.samples.push_back({{random_tensor({2, 3, 4})}, attrs(1), {}});
    t.samples.push_back({{random_tensor({7, 3})}, attrs(1), {0}});
    t.samples.push_back({{random_tensor({7, 3})}, wide, {}});
    t.samples.push_back({{random_tensor({1})}, attrs(0), {}});
    t.samples.push_back({{random_tensor({0, 3})}, attrs(1), {}});
    t.samples.push_back({{random_tensor({3, 0})}, attrs(1), {}});
    t.samples.push_back({{random_tensor({37}, -90, 90)}, attrs(0), {}});
  }
  t.reference = [](const Sample& s) { return std::vector{lp_normalised(s)}; };
  t.slack = 4;
  const Type x = {f32, {3}, {}};
  t.bad = {{{{i32, {3}, {}}}, {}, "lp_normalize: expects a float tensor, got i32[3]"},
           {{x}, {{"p", int64_t{3}}}, "lp_normalize: attribute 'p' must be 1 or 2, not 3"},
           {{x}, {{"eps", -1.0}}, "lp_normalize: attribute 'eps' must not be negative"}};
  return t;
}

OpTest lp_normalize_nonfinite_test() {
  OpTest t;
  t.op = "lp_normalize";
  Tensor x = random_tensor({4, 3});
  at(x, 1) = NAN;
  at(x, 4) = INFINITY;
  for (const int64_t i : {6, 7, 8}) at(x, i) = 0;
  t.samples = {{{x}, {}, {}}};
  t.reference = [](const Sample& s) { return std::vector{lp_normalised(s)}; };
  t.gradient = false;
  t.slack = 4;
  return t;
}

const AddOpTest kLayerNorm(trailing_test("layer_norm", true));
const AddOpTest kLayerNormNonfinite(nonfinite_rows("layer_norm", true));
const AddOpTest kRmsNorm(trailing_test("rms_norm", false));
const AddOpTest kRmsNormNonfinite(nonfinite_rows("rms_norm", false));
const AddOpTest kGroupNorm(group_norm_test());
const AddOpTest kInstanceNorm(instance_norm_test());
const AddOpTest kLrn(lrn_test());
const AddOpTest kLpNormalize(lp_normalize_test());
const AddOpTest kLpNormalizeNonfinite(lp_normalize_nonfinite_test());

}  // namespace
}  // namespace fluid::testing::normalization_samples
