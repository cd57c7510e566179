// Random ops against Philox itself, whose known answers philox_test.cpp checks.

#include <algorithm>
#include <cmath>

#include "ops/random/philox.h"
#include "tests/support/op_harness.h"

namespace fluid::testing::random_samples {
namespace {

Tensor integers(const std::vector<int64_t>& shape, const std::vector<int64_t>& values) {
  Tensor t(i64, shape);
  std::copy(values.begin(), values.end(), t.as<int64_t>().begin());
  return t;
}

constexpr int64_t kSeed = 0x123456789, kStream = 0x5eadbeef'00000011;

/// In [0, 1), a multiple of 2^-24: element `index` of an initialiser's numbers.
double uniform_draw(const Sample& s, int64_t index) {
  const auto stream = s.attrs.get<int64_t>("stream");
  const uint32_t bits = philox_bits(s.inputs[0].as<int64_t>()[0], stream >> 32, stream, index);
  return (bits >> 8) * 0x1p-24;
}

Tensor empty_result(const Sample& s) {
  std::vector<int64_t> shape;
  for (const Dim& d : s.attrs.get<Type>("type").shape) shape.push_back(d.size);
  return Tensor(f64, shape);
}

OpTest drawing_test(const std::string& op, const Attrs& settings,
                    const std::function<double(const Sample&, int64_t)>& draw) {
  OpTest t;
  t.op = op;
  for (const Shape& shape : std::vector<Shape>{{3, 5}, {}, {0}, {1}, {37}, {2, 1, 3}}) {
    Attrs attrs = settings;
    attrs.set("type", Type{f64, shape, {}});
    attrs.set("stream", kStream);
    t.samples.push_back({{integers({}, {kSeed})}, attrs, {}});
  }
  t.reference = [draw](const Sample& s) {
    Tensor y = empty_result(s);
    for (int64_t i = 0; i < y.numel(); ++i) at(y, i) = draw(s, i);
    return std::vector{y};
  };
  t.slack = 8;
  const Attrs vector = {{"type", Type{f32, {3}, {}}}};
  t.bad = {{{{i64, {2}, {}}}, vector, op + ": the seed must be an i64 scalar, got i64[2]"},
           {{{i64, {}, {}}}, {{"type", Type{i32, {3}, {}}}}, op + ": draws floats, not i32[3]"}};
  return t;
}

OpTest uniform_test() {
  OpTest t = drawing_test("uniform", {{"low", -0.5}, {"high", 1.5}},
                          [](const Sample& s, int64_t i) { return uniform_draw(s, i) * 2 - 0.5; });
  t.bad.push_back({{{i64, {}, {}}},
                   {{"type", Type{f32, {3}, {}}}, {"low", 1.0}, {"high", 0.0}},
                   "uniform: attribute 'low' must not exceed 'high'"});
  return t;
}

OpTest normal_test() {
  OpTest t = drawing_test("normal", {{"mean", 1.0}, {"std", 0.5}}, [](const Sample& s, int64_t i) {
    const double radius = std::sqrt(-2 * std::log(uniform_draw(s, 2 * i) + 0x1p-24));
    return 1 + 0.5 * radius * std::cos(2 * M_PI * uniform_draw(s, 2 * i + 1));
  });
  t.bad.push_back({{{i64, {}, {}}},
                   {{"type", Type{f32, {3}, {}}}, {"std", -1.0}},
                   "normal: attribute 'std' must not be negative"});
  return t;
}

/// The number within [low, high] at which the truncated distribution function is `u`.
double truncated_normal_quantile(double u, double mean, double deviation, double low, double high) {
  const auto below = [&](double z) { return std::erf((z - mean) / (deviation * M_SQRT2)); };
  const double wanted = below(low) + u * (below(high) - below(low));
  for (int i = 0; i < 100; ++i) {  // bisection
    const double middle = (low + high) / 2;
    (below(middle) < wanted ? low : high) = middle;
  }
  return (low + high) / 2;
}

OpTest truncated_normal_test() {
  OpTest t =
      drawing_test("truncated_normal", {{"mean", 1.0}, {"std", 0.5}, {"low", 0.25}, {"high", 2.5}},
                   [](const Sample& s, int64_t i) {
                     return truncated_normal_quantile(uniform_draw(s, i), 1, 0.5, 0.25, 2.5);
                   });
  const auto bad = [&](const Attrs& settings, const std::string& message) {
    Attrs attrs = settings;
    attrs.set("type", Type{f32, {3}, {}});
    t.bad.push_back({{{i64, {}, {}}}, attrs, "truncated_normal: " + message});
  };
  bad({{"std", 0.0}}, "attribute 'std' must be above 0");
  bad({{"low", 2.0}}, "attribute 'low' must be below 'high'");
  bad({{"high", 6.0}}, "attributes 'low' and 'high' must lie within 5 'std' of 'mean'");
  return t;
}

OpTest dirac_test() {
  OpTest t;
  t.op = "dirac";
  for (const auto& [shape, groups] : std::vector<std::pair<Shape, int64_t>>{
           {{3, 4, 3}, 1}, {{4, 2, 2, 3}, 2}, {{6, 1, 1, 1, 5}, 3}, {{0, 2, 3}, 1}}) {
    t.samples.push_back({{}, {{"type", Type{f64, shape, {}}}, {"groups", groups}}, {}});
  }
  t.reference = [](const Sample& s) {
    Tensor y = empty_result(s);
    const std::vector<int64_t>& shape = y.shape();
    int64_t taps = 1, center = 0;
    for (size_t d = 2; d < shape.size(); ++d) {
      taps *= shape[d];
      center = center * shape[d] + shape[d] / 2;
    }
    const int64_t channels = shape[0] / s.attrs.get<int64_t>("groups");
    for (int64_t out = 0; out < shape[0]; ++out) {
      const int64_t in = out % channels;
      if (in < shape[1]) at(y, (out * shape[1] + in) * taps + center) = 1;
    }
    return std::vector{y};
  };
  t.bad = {{{},
            {{"type", Type{f32, {3, 4}, {}}}},
            "dirac: needs a convolution filter [out, in, taps...], not f32[3, 4]"},
           {{},
            {{"type", Type{f32, {3, 4, 3}, {}}}, {"groups", int64_t{2}}},
            "dirac: attribute 'groups' must divide the 3 output channels, not be 2"}};
  return t;
}

constexpr int64_t kRun = 7, kFirst = 1000003;

/// Whether each unit of a sample survives: keyed by the sample's number in the whole data and the
/// unit's place in it.
OpTest dropout_test(const std::string& op, bool channels) {
  OpTest t;
  t.op = op;
  const Tensor rng = integers({3}, {kSeed, kRun, kFirst});
  const auto add = [&](const std::vector<int64_t>& shape, double p, const std::vector<int>& batch) {
    t.samples.push_back({{random_tensor(shape), rng}, {{"p", p}, {"stream", int64_t{11}}}, batch});
  };
  for (const double p : {0.5, 0.1, 0.0, 1.0}) add({4, 5, 3}, p, {});
  add({37, 2}, 0.25, {});
  add({0, 3}, 0.25, {});
  add({1, 1}, 0.25, {});
  add({7, 3, 2}, 0.25, {0});
  add({1, 13}, 0.25, {0});
  t.reference = [channels](const Sample& s) {
    const Tensor& x = s.inputs[0];
    const double p = s.attrs.get<double>("p");
    int64_t inner = 1;
    for (size_t d = 2; channels && d < x.shape().size(); ++d) inner *= x.shape()[d];
    // Samples follow each other in memory, so one number counts both sample and unit.
    const int64_t units = x.numel() / inner;
    const int64_t first = s.batch_dims.empty() ? 0 : kFirst * (units / x.shape()[0]);
    Tensor y(f64, x.shape());
    for (int64_t i = 0; i < x.numel(); ++i) {
      const uint32_t bits = philox_bits(kSeed, kRun, 11, first + i / inner);
      at(y, i) = bits >= std::ldexp(p, 32) ? x.at(i) / (1 - p) : 0;
    }
    return std::vector{y};
  };
  const Type x = {f32, {2, 3}, {}}, state = {i64, {3}, {}};
  t.bad = {{{x, state}, {{"p", 1.5}}, op + ": attribute 'p' must lie between 0 and 1, not be 1.5"},
           {{x, state},
            {{"p", std::nan("")}},
            op + ": attribute 'p' must lie between 0 and 1, not be nan"},
           {{x, {i64, {2}, {}}},
            {},
            op + ": the random state must be i64[3] = {seed, run, first sample}, got i64[2]"},
           {{{i32, {2, 3}, {}}, state},
            {},
            op + ": expects a float tensor of " + (channels ? "2" : "0") +
                " or more dimensions, got i32[2, 3]"}};
  if (channels) {
    t.bad.push_back({{{f32, {3}, {}}, state},
                     {},
                     op + ": expects a float tensor of 2 or more dimensions, got f32[3]"});
  }
  return t;
}

constexpr int64_t kStepStream = 11;

Tensor step_state() { return integers({3}, {kSeed, kRun, kFirst}); }

/// In [0, 1): number `draw` of `draws` of element `i` of a tensor whose first sample has `first`
/// elements before it in the whole data.
double step_uniform(int64_t first, int64_t i, int64_t draws = 1, int64_t draw = 0) {
  return (philox_bits(kSeed, kRun, kStepStream, (first + i) * draws + draw) >> 8) * 0x1p-24;
}

OpTest step_drawing_test(const std::string& op, const Attrs& settings,
                         const std::function<double(int64_t first, int64_t i)>& draw) {
  OpTest t;
  t.op = op;
  for (const Shape& shape : std::vector<Shape>{{3, 5}, {}, {0}, {1}, {37}, {kBatch, 3, 2}}) {
    Attrs attrs = settings;
    attrs.set("type", Type{f64, shape, {}});
    attrs.set("stream", kStepStream);
    t.samples.push_back({{step_state()}, attrs, {}});
  }
  t.reference = [draw](const Sample& s) {
    const Shape& shape = s.attrs.get<Type>("type").shape;
    const int64_t first = shape.has_batch() ? kFirst * shape.numel().size : 0;
    Tensor y = empty_result(s);  // the batch size is 1
    for (int64_t i = 0; i < y.numel(); ++i) at(y, i) = draw(first, i);
    return std::vector{y};
  };
  t.gradient = false;  // there is none
  t.slack = 8;
  const Attrs vector = {{"type", Type{f32, {3}, {}}}};
  t.bad = {{{{i64, {}, {}}},
            vector,
            op + ": the random state must be i64[3] = {seed, run, first sample}, got i64[]"},
           {{{i64, {3}, {}}}, {{"type", Type{i32, {3}, {}}}}, op + ": draws floats, not i32[3]"}};
  return t;
}

OpTest random_uniform_test() {
  OpTest t =
      step_drawing_test("random_uniform", {{"low", -0.5}, {"high", 1.5}},
                        [](int64_t first, int64_t i) { return step_uniform(first, i) * 2 - 0.5; });
  t.bad.push_back({{{i64, {3}, {}}},
                   {{"type", Type{f32, {3}, {}}}, {"low", 1.0}, {"high", 0.0}},
                   "random_uniform: attribute 'low' must not exceed 'high'"});
  return t;
}

OpTest random_normal_test() {
  OpTest t = step_drawing_test(
      "random_normal", {{"mean", 1.0}, {"std", 0.5}}, [](int64_t first, int64_t i) {
        const double radius = std::sqrt(-2 * std::log(step_uniform(first, i, 2, 0) + 0x1p-24));
        return 1 + 0.5 * radius * std::cos(2 * M_PI * step_uniform(first, i, 2, 1));
      });
  t.bad.push_back({{{i64, {3}, {}}},
                   {{"type", Type{f32, {3}, {}}}, {"std", -1.0}},
                   "random_normal: attribute 'std' must not be negative"});
  return t;
}

/// Number of elements before the first sample in the whole data; 0 without a batch dimension.
int64_t elements_before(const Sample& s) {
  const Tensor& x = s.inputs[0];
  return s.batch_dims.empty() ? 0 : kFirst * (x.numel() / x.shape()[0]);
}

OpTest bernoulli_test() {
  OpTest t;
  t.op = "bernoulli";
  const auto add = [&](const Tensor& p, const std::vector<int>& batch) {
    t.samples.push_back({{p, step_state()}, {{"stream", kStepStream}}, batch});
  };
  add(random_tensor({4, 5}, 0, 1), {});
  add(random_tensor({7, 3}, 0, 1), {0});
  add(Tensor::of<double>({4}, std::vector<double>{0, 1, -1, 2}), {});
  add(random_tensor({}, 0, 1), {});
  add(random_tensor({0, 3}), {});
  t.reference = [](const Sample& s) {
    Tensor y(f64, s.inputs[0].shape());
    for (int64_t i = 0; i < y.numel(); ++i) {
      at(y, i) = step_uniform(elements_before(s), i) < s.inputs[0].at(i) ? 1 : 0;
    }
    return std::vector{y};
  };
  t.gradient = false;  // there is none
  t.bad = {{{{i64, {2}, {}}, {i64, {3}, {}}},
            {},
            "bernoulli: the probabilities must be a float tensor, not i64[2]"},
           {{{f32, {2}, {}}, {i64, {2}, {}}},
            {},
            "bernoulli: the random state must be i64[3] = {seed, run, first sample}, got i64[2]"}};
  return t;
}

OpTest categorical_test() {
  OpTest t;
  t.op = "categorical";
  const auto add = [&](const Tensor& logits, const std::vector<int>& batch) {
    t.samples.push_back({{logits, step_state()}, {{"stream", kStepStream}}, batch});
  };
  add(random_tensor({5, 3}), {});
  add(random_tensor({37, 2, 5}), {0});
  add(Tensor::of<double>({2, 3}, std::vector<double>{0, -INFINITY, 0, 50, 0, 0}), {});
  add(random_tensor({7}), {});
  add(random_tensor({2, 1}), {});
  add(random_tensor({0, 3}), {});
  t.reference = [](const Sample& s) {
    const Tensor& logits = s.inputs[0];
    const int64_t classes = logits.shape().back();
    Tensor y(i64, Extents(logits.shape().begin(), logits.shape().end() - 1));
    for (int64_t row = 0; row < y.numel(); ++row) {
      double best = -INFINITY;
      for (int64_t i = row * classes; i < (row + 1) * classes; ++i) {
        const double u = std::max(step_uniform(elements_before(s), i), 0x1p-25);
        const double score = logits.at(i) - std::log(-std::log(u));
        if (score <= best) continue;
        best = score;
        y.as<int64_t>()[static_cast<size_t>(row)] = i % classes;
      }
    }
    return std::vector{y};
  };
  t.bad = {
      {{{f32, {2, 0}, {}}, {i64, {3}, {}}},
       {},
       "categorical: the logits must be a float tensor [..., C] with C > 0, not f32[2, 0]"},
      {{{f32, {2, 3}, {}}, {i64, {2}, {}}},
       {},
       "categorical: the random state must be i64[3] = {seed, run, first sample}, got i64[2]"}};
  return t;
}

const AddOpTest kRandomUniform(random_uniform_test());
const AddOpTest kRandomNormal(random_normal_test());
const AddOpTest kBernoulli(bernoulli_test());
const AddOpTest kCategorical(categorical_test());
const AddOpTest kUniform(uniform_test());
const AddOpTest kNormal(normal_test());
const AddOpTest kTruncatedNormal(truncated_normal_test());
const AddOpTest kDirac(dirac_test());
const AddOpTest kDropout(dropout_test("dropout", false));
const AddOpTest kDropout2d(dropout_test("dropout2d", true));

}  // namespace
}  // namespace fluid::testing::random_samples
