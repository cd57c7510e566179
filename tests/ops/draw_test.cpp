// Tests that random numbers are uniform, normal, independent, and the same for any division of the
// batch. All seeds are fixed, so no test fails by chance.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "ops/operators.h"
#include "tests/support/interpreter.h"

namespace fluid::testing::draw_test {
namespace {

using Numbers = std::vector<double>;

constexpr int64_t kMany = 40000;

Numbers list(const Tensor& t) {
  Numbers values;
  for (int64_t i = 0; i < t.numel(); ++i) values.push_back(t.at(i));
  return values;
}

Tensor integers(const std::vector<int64_t>& shape, const std::vector<int64_t>& values) {
  Tensor t(i64, shape);
  std::copy(values.begin(), values.end(), t.as<int64_t>().begin());
  return t;
}

Numbers drawn(const std::string& op, int64_t seed, int64_t stream) {
  ir::Program program("draw");
  const Value key = record_source(program.main(), "data", "seed", {i64, {}, {}}, {}, {});
  const Attrs attrs = {{"type", Type{f64, {kMany}, {}}}, {"stream", stream}};
  program.main().outputs = {{"y", record(program.main(), op, {key}, attrs, {})[0]}};
  return list(interpret(program.main(), {{"seed", integers({}, {seed})}}).outputs.at("y"));
}

double mean_of(const Numbers& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

/// Mean of (x - mean x) (y - mean y).
double covariance(const Numbers& x, const Numbers& y) {
  const double mean_x = mean_of(x), mean_y = mean_of(y);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - mean_x) * (y[i] - mean_y);
  return sum / static_cast<double>(x.size());
}

double correlation(const Numbers& x, const Numbers& y) {
  return covariance(x, y) / std::sqrt(covariance(x, x) * covariance(y, y));
}

/// Pearson's statistic of numbers in [0, 1) over 100 equal bins.
double chi_square(const Numbers& u) {
  Numbers bins(100);
  for (const double x : u) ++bins[static_cast<size_t>(x * 100)];
  const double expected = static_cast<double>(u.size()) / 100;
  double sum = 0;
  for (const double n : bins) sum += (n - expected) * (n - expected) / expected;
  return sum;
}

// Quantiles 0.0005 and 0.9995 of chi-square with 99 degrees of freedom.
constexpr double kChiLow = 58.1, kChiHigh = 151.9;
// Five standard deviations of the mean of kMany numbers of variance 1.
const double kFiveSigma = 5 / std::sqrt(static_cast<double>(kMany));

TEST(Draw, UniformNumbersFillTheUnitInterval) {
  const Numbers u = drawn("uniform", 1, 2);
  for (const double x : u) ASSERT_TRUE(x >= 0 && x < 1) << x;
  EXPECT_NEAR(mean_of(u), 0.5, kFiveSigma * std::sqrt(1.0 / 12));
  EXPECT_NEAR(covariance(u, u), 1.0 / 12, kFiveSigma * std::sqrt(1.0 / 180));
  EXPECT_GT(chi_square(u), kChiLow);
  EXPECT_LT(chi_square(u), kChiHigh);
}

TEST(Draw, NormalNumbersFollowTheBellCurve) {
  const Numbers z = drawn("normal", 1, 2);
  Numbers u, fourth;
  for (const double x : z) {
    u.push_back(std::erfc(-x / std::sqrt(2.0)) / 2);
    fourth.push_back(std::pow(x, 4));
  }
  EXPECT_NEAR(mean_of(z), 0, kFiveSigma);
  EXPECT_NEAR(covariance(z, z), 1, kFiveSigma * std::sqrt(2.0));
  EXPECT_NEAR(mean_of(fourth), 3, kFiveSigma * std::sqrt(96.0));
  EXPECT_GT(chi_square(u), kChiLow);
  EXPECT_LT(chi_square(u), kChiHigh);
}

TEST(Draw, SeedsStreamsAndNeighboursAreIndependent) {
  for (const std::string op : {"uniform", "normal"}) {
    const Numbers x = drawn(op, 1, 2);
    EXPECT_EQ(x, drawn(op, 1, 2));
    EXPECT_NEAR(correlation(x, drawn(op, 1, 3)), 0, kFiveSigma);
    EXPECT_NEAR(correlation(x, drawn(op, 2, 2)), 0, kFiveSigma);
    EXPECT_NEAR(correlation(x, drawn(op, 1, (int64_t{1} << 32) + 2)), 0, kFiveSigma);
    Numbers next = x;
    std::rotate(next.begin(), next.begin() + 1, next.end());
    EXPECT_NEAR(correlation(x, next), 0, kFiveSigma);
  }
}

/// A step's dropout of ones, and its gradient for a gradient of ones.
struct Dropped {
  Numbers y, dx;
};
struct Step {
  int64_t run = 0, first = 0, batch = 1;
};

Dropped dropped(const std::string& op, double p, const Shape& shape, const Step& step) {
  ir::Program program("dropout");
  ir::Graph& graph = program.main();
  const Value x = record_source(graph, "data", "x", {f64, shape, {}}, {}, {});
  const Value rng = record_source(graph, "data", "rng", {i64, {3}, {}}, {}, {});
  const Attrs attrs = {{"p", p}, {"stream", int64_t{5}}};
  const Value y = record(graph, op, {x, rng}, attrs, {})[0];
  const Values dx = std::get<GradFn>(*op_named(op).grad)(GradCtx(*y.op(), {x}));
  graph.outputs = {{"y", y}, {"dx", dx[0]}};
  std::vector<int64_t> extents;
  for (const Dim& d : shape) extents.push_back(d.at(step.batch));
  Tensor ones(f64, extents);
  for (double& v : ones.as<double>()) v = 1;
  const NamedTensors feeds = {{"x", ones}, {"rng", integers({3}, {9, step.run, step.first})}};
  const NamedTensors out = interpret(graph, feeds, {step.batch, {}}).outputs;
  return {list(out.at("y")), list(out.at("dx"))};
}

TEST(Dropout, DropsTheAskedShareAndKeepsTheMean) {
  for (const double p : {0.1, 0.5, 0.75}) {
    const Numbers y = dropped("dropout", p, {kMany}, {}).y;
    for (const double v : y) ASSERT_TRUE(v == 0 || v == 1 / (1 - p)) << v;
    EXPECT_NEAR(mean_of(y), 1, kFiveSigma * std::sqrt(p / (1 - p)));
  }
}

TEST(Dropout, UsesOneMaskForwardAndBackward) {
  for (const std::string op : {"dropout", "dropout2d"}) {
    const Dropped d = dropped(op, 0.5, {kBatch, 7, 3}, {.run = 3, .first = 4, .batch = 5});
    EXPECT_EQ(d.y, d.dx);
  }
}

TEST(Dropout, GivesTheSameMaskHoweverTheBatchIsSplit) {
  for (const std::string op : {"dropout", "dropout2d"}) {
    for (const Dim& rows : {kBatch, Dim::of_batch(3)}) {
      const Shape shape = {rows, 7, 3};
      const Numbers whole = dropped(op, 0.5, shape, {.first = 100, .batch = 12}).y;
      Numbers parts = dropped(op, 0.5, shape, {.first = 100, .batch = 5}).y;
      const Numbers rest = dropped(op, 0.5, shape, {.first = 105, .batch = 7}).y;
      parts.insert(parts.end(), rest.begin(), rest.end());
      EXPECT_EQ(whole, parts);
    }
  }
}

TEST(Dropout, ChangesItsMaskWithEveryRun) {
  const Numbers first = dropped("dropout", 0.5, {kMany}, {.run = 0}).y;
  const Numbers second = dropped("dropout", 0.5, {kMany}, {.run = 1}).y;
  EXPECT_NEAR(correlation(first, second), 0, kFiveSigma);
}

TEST(Dropout, DropsWholeChannels) {
  const Numbers y = dropped("dropout2d", 0.5, {20, 10, 3, 2}, {}).y;
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], y[i / 6 * 6]) << i;
  EXPECT_NEAR(mean_of(y), 1, 5 / std::sqrt(200.0));
}

TEST(Dropout, CostsADrawForWhatIsDroppedTogether) {
  const auto flops = [](const std::string& op, const Shape& dims) {
    const Type x{f32, dims, {}};
    const std::vector<Type> in = {x, {i64, {3}, {}}}, out = {x};
    const Attrs attrs;
    return (*op_named(op).cost)(CostCtx{in, out, attrs}).flops;
  };
  EXPECT_EQ(flops("dropout", {128, 64, 4, 4}), 60 * 131072);
  EXPECT_EQ(flops("dropout2d", {128, 64, 4, 4}), 58 * 8192 + 2 * 131072);
  EXPECT_EQ(flops("dropout2d", {128, 64}), flops("dropout", {128, 64}));
}

TEST(Dropout, IsItsOperandInInference) {
  ir::Program program("inference");
  ir::Graph& graph = program.main();
  const Value x = record_source(graph, "data", "x", {f32, {2, 3}, {}}, {}, {});
  const Value rng = record_source(graph, "data", "rng", {i64, {3}, {}}, {}, {});
  for (const std::string op : {"dropout", "dropout2d"}) {
    const Value y = record(graph, op, {x, rng}, {}, {})[0];
    EXPECT_EQ(op_named(op).inference(ExpandCtx(*y.op())), Values{x});
  }
}

}  // namespace
}  // namespace fluid::testing::draw_test
