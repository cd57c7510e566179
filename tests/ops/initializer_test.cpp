#include "ops/random/initializer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/record.h"
#include "tests/support/errors.h"
#include "tests/support/interpreter.h"

namespace fluid::initializer_test {
namespace {

std::vector<double> initial(const Shape& shape, const Attrs& attrs, const std::string& name = "w") {
  ir::Program program("startup");
  ir::Graph& graph = program.main();
  const Value seed = record_source(graph, "data", "seed", {i64, {}, {}}, {}, {});
  const Type type = {f64, shape, {}};
  graph.outputs = {{"w", record_initializer(graph, seed, name, type, attrs, {"net.cpp", 3})}};
  const Tensor zero(i64, {});
  const Tensor w = testing::interpret(graph, {{"seed", zero}}).outputs.at("w");
  std::vector<double> values;
  for (int64_t i = 0; i < w.numel(); ++i) values.push_back(w.at(i));
  return values;
}

Attrs init(const std::string& name, Attrs attrs = {}) {
  attrs.set("init", name);
  return attrs;
}

double deviation(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum / static_cast<double>(x.size()));
}

/// Uniform numbers reach their bounds, within what their number makes sure, and never pass them.
void expect_bounds(const std::vector<double>& x, double low, double high) {
  const auto [least, most] = std::minmax_element(x.begin(), x.end());
  const double room = 0.01 * (high - low);
  EXPECT_GE(*least, low);
  EXPECT_LE(*most, high);
  EXPECT_NEAR(*least, low, room);
  EXPECT_NEAR(*most, high, room);
}

// A matrix is [in, out], a filter [out, in, taps...].
const Shape kMatrix = {40, 60}, kFilter = {8, 12, 3, 5};
constexpr double kFilterIn = 12 * 15, kFilterOut = 8 * 15;

TEST(Initializer, Constants) {
  EXPECT_EQ(initial({2}, {}), (std::vector<double>{0, 0}));
  EXPECT_EQ(initial({2}, init("ones")), (std::vector<double>{1, 1}));
  EXPECT_EQ(initial({2}, init("constant", {{"value", 0.25}})), (std::vector<double>{0.25, 0.25}));
  EXPECT_EQ(initial({2}, init("constant", {{"value", int64_t{3}}})), (std::vector<double>{3, 3}));
}

// The formulas of torch.nn.init.
TEST(Initializer, BoundsAreThoseOfPyTorch) {
  expect_bounds(initial(kMatrix, init("uniform")), 0, 1);
  expect_bounds(initial(kMatrix, init("uniform", {{"low", -2.0}, {"high", 3.0}})), -2, 3);
  const double xavier = std::sqrt(6.0 / (40 + 60));
  expect_bounds(initial(kMatrix, init("xavier_uniform")), -xavier, xavier);
  expect_bounds(initial(kMatrix, init("xavier_uniform", {{"gain", 2.0}})), -2 * xavier, 2 * xavier);
  const double xavier_filter = std::sqrt(6.0 / (kFilterIn + kFilterOut));
  expect_bounds(initial(kFilter, init("xavier_uniform")), -xavier_filter, xavier_filter);
  const double kaiming = std::sqrt(6.0 / 40);
  expect_bounds(initial(kMatrix, init("kaiming_uniform")), -kaiming, kaiming);
  // PyTorch's default of layers: the bound is 1 / sqrt(fan_in).
  const double layer = 1 / std::sqrt(kFilterIn);
  expect_bounds(initial(kFilter, init("kaiming_uniform", {{"slope", std::sqrt(5.0)}})), -layer,
                layer);
  const double out = std::sqrt(6 / kFilterOut);
  const Attrs fan_out = init("kaiming_uniform", {{"mode", std::string("fan_out")}});
  expect_bounds(initial(kFilter, fan_out), -out, out);
}

TEST(Initializer, DeviationsAreThoseOfPyTorch) {
  // Five standard deviations of the estimate from 2400 numbers.
  const double error = 5 / std::sqrt(2 * 2400.0);
  const auto expect = [&](const Attrs& attrs, double wanted) {
    EXPECT_NEAR(deviation(initial(kMatrix, attrs)) / wanted, 1, error);
  };
  expect(init("normal"), 1);
  expect(init("normal", {{"std", 0.02}}), 0.02);
  expect(init("xavier_normal"), std::sqrt(2.0 / (40 + 60)));
  expect(init("kaiming_normal"), std::sqrt(2.0 / 40));
  expect(init("kaiming_normal", {{"slope", 1.0}}), std::sqrt(1.0 / 40));
  expect(init("kaiming_normal", {{"mode", std::string("fan_out")}}), std::sqrt(2.0 / 60));
}

TEST(Initializer, TruncatedNormalHasTheDistributionOfPyTorchs) {
  const Attrs attrs = init("truncated_normal", {{"std", 0.5}, {"low", -0.25}, {"high", 1.0}});
  std::vector<double> x = initial(kMatrix, attrs);
  expect_bounds(x, -0.25, 1.0);
  std::ranges::sort(x);
  const auto below = [](double z) { return 0.5 * std::erf(z / 0.5 / M_SQRT2); };
  double farthest = 0;  // Kolmogorov-Smirnov: 1.63 / sqrt(n) at 1 %
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = (below(x[i]) - below(-0.25)) / (below(1) - below(-0.25));
    const double found = static_cast<double>(i) / static_cast<double>(x.size());
    farthest = std::max(farthest, std::abs(expected - found));
  }
  EXPECT_LT(farthest, 1.63 / std::sqrt(static_cast<double>(x.size())));
  expect_bounds(initial(kMatrix, init("truncated_normal", {{"mean", 1.0}, {"std", 0.5}})), 0, 2);
}

/// Largest difference of x x^T, or x^T x for a tall `x`, from gain^2 I.
double distance_from_orthogonal(const std::vector<double>& x, int64_t rows, int64_t columns,
                                double gain) {
  const bool is_wide = rows <= columns;
  const int64_t n = is_wide ? rows : columns, m = is_wide ? columns : rows;
  const auto at = [&](int64_t vector, int64_t i) {
    return x[static_cast<size_t>(is_wide ? vector * columns + i : i * columns + vector)];
  };
  double farthest = 0;
  for (int64_t a = 0; a < n; ++a) {
    for (int64_t b = 0; b < n; ++b) {
      double product = 0;
      for (int64_t i = 0; i < m; ++i) product += at(a, i) * at(b, i);
      farthest = std::max(farthest, std::abs(product - (a == b ? gain * gain : 0)));
    }
  }
  return farthest;
}

TEST(Initializer, OrthogonalHasOrthonormalRowsOrColumns) {
  const auto distance = [](const Shape& shape, int64_t rows, int64_t columns, double gain) {
    const Attrs attrs = init("orthogonal", {{"gain", gain}});
    return distance_from_orthogonal(initial(shape, attrs), rows, columns, gain);
  };
  EXPECT_LT(distance({20, 30}, 20, 30, 1), 1e-12);
  EXPECT_LT(distance({30, 20}, 30, 20, 2), 1e-12);
  EXPECT_LT(distance({1, 5}, 1, 5, 1), 1e-12);
  EXPECT_LT(distance({8, 3, 3, 3}, 8, 27, 0.5), 1e-12);
  for (const char* name : {"a", "b", "c"}) {  // square matrices are the worst conditioned
    const std::vector<double> x = initial({24, 24}, init("orthogonal"), name);
    EXPECT_LT(distance_from_orthogonal(x, 24, 24, 1), 1e-12) << name;
    EXPECT_LT(*std::ranges::max_element(x), 0.9) << "is no permutation";
  }
}

/// Its iterations are a scan: the number of ops does not depend on the number of iterations.
TEST(Initializer, OrthogonalCompilesOneIteration) {
  const auto recorded_ops = [](int64_t extent) {
    ir::Program program("startup");
    ir::Graph& graph = program.main();
    const Value seed = record_source(graph, "data", "seed", {i64, {}, {}}, {}, {});
    record_initializer(graph, seed, "w", {f32, {extent, extent}, {}}, init("orthogonal"), {});
    size_t ops = graph.ops.size();
    for (const auto& body : program.graphs) ops += &*body == &graph ? 0 : body->ops.size();
    return ops;
  };
  EXPECT_EQ(recorded_ops(512), recorded_ops(2));
  EXPECT_LT(recorded_ops(512), 60U);
}

TEST(Initializer, NumbersBelongToTheVariable) {
  EXPECT_EQ(initial(kMatrix, init("normal"), "a"), initial(kMatrix, init("normal"), "a"));
  EXPECT_NE(initial(kMatrix, init("normal"), "a"), initial(kMatrix, init("normal"), "b"));
}

TEST(Initializer, NamesMistakes) {
  const auto expect = [](const Shape& shape, const Attrs& attrs, const std::string& message) {
    expect_user_error([&] { initial(shape, attrs); }, "net.cpp:3: " + message);
  };
  expect({2, 2}, init("xavier_unifrom"),
         "'w' asks for an unknown initialiser 'xavier_unifrom' (did you mean 'xavier_uniform'?)");
  expect({2, 2}, init("kaiming_normal", {{"mode", std::string("fan")}}),
         "initialiser setting 'mode' of 'w' must be fan_in or fan_out, not 'fan'");
  expect({2, 2}, init("normal", {{"std", std::string("big")}}),
         "initialiser setting 'std' must be a number, not a string");
  expect({2, 2}, init("kaiming_normal", {{"mode", int64_t{1}}}),
         "initialiser setting 'mode' must be of kind string, not int");
  expect({2, 2}, {{"init", 1.0}}, "initialiser setting 'init' must be of kind string, not float");
  expect({2, 2}, init("normal", {{"stdd", 5.0}}),
         "initialiser 'normal' of 'w' has no setting 'stdd' (did you mean 'std'?)");
  expect({2}, init("xavier_normal"),
         "this initialiser needs a weight of two or more dimensions, not [2]");
  expect({2, 2}, init("normal", {{"std", -1.0}}), "normal: attribute 'std' must not be negative");
  expect({2}, init("orthogonal"),
         "initialiser 'orthogonal' of 'w' needs two or more dimensions, not [2]");
  expect({2, 2}, init("dirac"),
         "dirac: needs a convolution filter [out, in, taps...], not f64[2, 2]");
  expect({2, 2}, init("array", {{"values", std::vector<double>{1, 2, 3}}}),
         "initialiser 'array' of 'w' has 3 values for f64[2, 2]");
  expect({2}, init("array"), "initialiser 'array' of 'w' has 0 values for f64[2]");
}

}  // namespace
}  // namespace fluid::initializer_test
