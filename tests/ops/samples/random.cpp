// Random ops against Philox itself, whose known answers philox_test.cpp checks.

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
  t.bad = {{{x, state}, {{"p", 1.5}}, op + ": attribute 'p' must lie between 0 and 1"},
           {{x, state}, {{"p", std::nan("")}}, op + ": attribute 'p' must lie between 0 and 1"},
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

const AddOpTest kUniform(uniform_test());
const AddOpTest kNormal(normal_test());
const AddOpTest kDropout(dropout_test("dropout", false));
const AddOpTest kDropout2d(dropout_test("dropout2d", true));

}  // namespace
}  // namespace fluid::testing::random_samples
