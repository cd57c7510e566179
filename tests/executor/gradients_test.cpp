// Gradients as values of a program, against their formulas and against finite differences.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "frontend/fluid.h"
#include "tests/support/errors.h"

namespace fluid::gradients_test {
namespace {

Tensor numbers(const std::vector<int64_t>& shape) {
  Tensor t(f64, shape);
  double v = 0.3;
  for (double& x : t.as<double>()) x = v = std::fmod(v * 7.3, 2.0) - 0.7;
  return t;
}

TEST(Gradients, AreValuesThatHaveGradients) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 3}, f64);
  const Value first = gradients(x * x * x, {x}).at(0), second = gradients(first, {x}).at(0);
  net.output("first", first);
  net.output("second", second);
  Executor exe(net, cpu());
  const Tensor t = numbers({2, 3});
  const OutputViews out = exe.predict({{"x", t}});
  for (int64_t i = 0; i < t.numel(); ++i) {
    EXPECT_NEAR(out["first"].at(i), 3 * t.at(i) * t.at(i), 1e-14);
    EXPECT_NEAR(out["second"].at(i), 6 * t.at(i), 1e-14);
  }
}

TEST(Gradients, AreThoseOfASumWithRespectToEachValue) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 3}, f64), w = net.data("w", {3}, f64);
  const Values g = gradients(x * w, {x, w});
  net.output("dx", g.at(0));
  net.output("dw", g.at(1));
  Executor exe(net, cpu());
  const Tensor xs = numbers({2, 3}), ws = numbers({3});
  const OutputViews out = exe.predict({{"x", xs}, {"w", ws}});
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(out["dx"].at(i), ws.at(i));
    EXPECT_NEAR(out["dw"].at(i), xs.at(i) + xs.at(3 + i), 1e-15);
  }
}

/// A critic with a gradient penalty: Gulrajani et al., "Improved training of Wasserstein GANs",
/// NeurIPS 2017.
Program penalized_critic() {
  Program net("critic");
  const Value x = net.data("x", {kBatch, 3}, f64);
  const Value w0 = net.parameter("w0", {3, 4}, Init::zeros(), {.dtype = f64});
  const Value w1 = net.parameter("w1", {4, 1}, Init::zeros(), {.dtype = f64});
  const Value critic = matmul(tanh(matmul(x, w0)), w1);
  const Value g = gradients(critic, {x}).at(0);
  const Value loss = mean(critic) + 10.0 * mean(square(sqrt(sum(g * g, {.axes = 1})) - 1.0));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 1});
  return net;
}

TEST(Gradients, OfAPenaltyAreFiniteDifferences) {
  const Program net = penalized_critic();
  const Tensor x = numbers({5, 3});
  Executor exe(net, cpu());
  const auto loss_with = [&](const std::string& name, Tensor value, int64_t i, double step) {
    value.as<double>()[static_cast<size_t>(i)] += step;
    exe.set_parameter(name, value);
    return exe.eval({{"x", x}})["loss"].item();
  };
  for (const std::string name : {"w0", "w1"}) {
    const auto start = [&] {
      exe.set_parameter("w0", numbers({3, 4}));
      exe.set_parameter("w1", numbers({4, 1}));
    };
    start();
    exe.run({{"x", x}});
    const Tensor before =
        numbers(name == "w0" ? std::vector<int64_t>{3, 4} : std::vector<int64_t>{4, 1});
    const Tensor after = exe.parameter(name);
    start();
    for (int64_t i = 0; i < before.numel(); ++i) {
      constexpr double kStep = 1e-5;
      const double slope =
          (loss_with(name, before.copy(), i, kStep) - loss_with(name, before.copy(), i, -kStep)) /
          (2 * kStep);
      EXPECT_NEAR(before.at(i) - after.at(i), slope, 1e-7) << name << "[" << i << "]";
    }
  }
}

TEST(Gradients, RejectWhatHasNone) {
  Program net("net");
  const Value x = net.data("x", {4}, f32), index = net.data("index", {4}, i64);
  expect_user_error([&] { gradients(index, {x}); },
                    "gradients: y must be a float tensor, got i64[4]");
  expect_user_error([&] { gradients(x, {index}); }, "gradients: expects float xs, got i64[4]");
}

TEST(Gradients, RejectAValueThatDoesNotReach) {
  Program net("net");
  const Value x = net.data("x", {4}, f32), other = net.data("other", {4}, f32);
  net.output("gradient", gradients(square(other), {x}).at(0));
  expect_user_error([&] { Executor(net, cpu()).prepare({.predict = {1}}); },
                    "gradients: y does not depend on xs[0], f32[4]");
}

TEST(Gradients, ThroughStepFunctionsAreZero) {
  Program net("net");
  const Value x = net.data("x", {3}, f32);
  net.output("gradient", gradients(floor(x) + sign(x), {x}).at(0));
  Executor exe(net, cpu());
  const float values[] = {-1.5, 0, 2.5};
  const OutputViews outputs = exe.predict({{"x", Tensor::of<float>({3}, values)}});
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(outputs["gradient"].at(i), 0);
}

/// A function of float tensors.
struct Function {
  std::string name;
  std::vector<std::vector<int64_t>> shapes;
  std::function<Value(Program& net, const Values& xs)> record;
};

Value index_of(const Program&, const Values& xs, const std::vector<int64_t>& rows) {
  Value index;
  for (const int64_t row : rows) {
    const Value one =
        fill(*xs[0].op()->graph(), {.type = Type{i64, {1}, {}}, .value = static_cast<double>(row)});
    index = index ? concat({index, one}, {.axis = 0}) : one;
  }
  return index;
}

std::vector<Function> twice_differentiable() {
  const std::vector<int64_t> image = {2, 2, 7, 6};
  const auto attention = [](const ScaledDotProductAttention& options) {
    return [options](Program&, const Values& xs) {
      return scaled_dot_product_attention(xs[0], xs[1], xs[2], options);
    };
  };
  const std::vector<std::vector<int64_t>> q_k_v = {{1, 4, 5, 3}, {1, 2, 6, 3}, {1, 2, 6, 2}};
  return {
      {"max_pool1d",
       {{2, 2, 9}},
       [](Program&, const Values& xs) {
         return max_pool1d(xs[0], {.kernel = 3, .stride = 2, .padding = 1});
       }},
      {"max_pool2d",
       {image},
       [](Program&, const Values& xs) {
         return max_pool2d(xs[0],
                           {.kernel = {3, 2}, .stride = 2, .padding = 1, .dilation = {1, 2}});
       }},
      {"max_pool3d",
       {{1, 2, 4, 3, 5}},
       [](Program&, const Values& xs) { return max_pool3d(xs[0], {.kernel = 2, .stride = 1}); }},
      {"adaptive_max_pool2d",
       {image},
       [](Program&, const Values& xs) {
         return adaptive_max_pool2d(xs[0], {.output = {3, 4}});
       }},
      {"avg_pool2d",
       {image},
       [](Program&, const Values& xs) {
         return avg_pool2d(xs[0], {.kernel = 3, .stride = 2, .padding = 1});
       }},
      {"adaptive_avg_pool2d",
       {image},
       [](Program&, const Values& xs) {
         return adaptive_avg_pool2d(xs[0], {.output = {3, 4}});
       }},
      {"cumprod", {{3, 5}}, [](Program&, const Values& xs) { return cumprod(xs[0], {.axis = 1}); }},
      {"cumprod_reverse",
       {{4, 3}},
       [](Program&, const Values& xs) {
         return cumprod(xs[0], {.axis = 0, .exclusive = true, .reverse = true});
       }},
      {"embedding_bag",
       {{5, 3}, {2, 3}},
       [](Program& net, const Values& xs) {
         const Value index = reshape(index_of(net, xs, {1, 4, 1, 0, 2, 2}), {2, 3});
         return embedding_bag(xs[0], index, xs[1],
                              {.mode = "sum", .padding_idx = std::vector<int64_t>{2}});
       }},
      {"attention", q_k_v, attention({})},
      {"causal_attention", q_k_v, attention({.causal = true, .scale = 0.7})},
      {"masked_attention",
       {{1, 2, 5, 3}, {1, 2, 6, 3}, {1, 2, 6, 2}},
       [](Program&, const Values& xs) {
         ir::Graph& graph = *xs[0].op()->graph();
         const Value key = arange(graph, {.type = Type{f64, {6}, {}}});
         const Value mask = where(less(key, 2.0 + 0.0 * key), -0.5 * key, 0.1 * key);
         return scaled_dot_product_attention(xs[0], xs[1], xs[2], mask);
       }},
      {"lstm", {{2, 3, 2}}, [](Program&, const Values& xs) {
         return lstm(xs[0], {.units = 2, .name = "lstm"}).output;
       }}};
}

class SecondGradient : public ::testing::TestWithParam<Function> {};

/// The slopes of a weighted sum of first gradients, by central differences.
TEST_P(SecondGradient, IsASlope) {
  const Function& f = GetParam();
  Program net("net");
  Values xs;
  for (size_t i = 0; i < f.shapes.size(); ++i) {
    const Shape shape(f.shapes[i].begin(), f.shapes[i].end());
    xs.push_back(net.data("x" + std::to_string(i), shape, f64));
  }
  const Value y = f.record(net, xs);
  const Values first = gradients(sum(square(y)), xs);
  Value total;
  for (const Value g : first) {
    const Value weights = reshape(
        sin(arange(*g.op()->graph(), {.type = Type{f64, {g.shape().numel()}, {}}, .start = 1.0})),
        g.shape());
    const Value term = sum(g * weights);
    total = total ? total + term : term;
  }
  net.output("total", total);
  const Values second = gradients(total, xs);
  for (size_t i = 0; i < xs.size(); ++i) net.output("d" + std::to_string(i), second[i]);
  Executor exe(net, cpu(), {.threads = 1, .precision = {.dtype = f64}});
  Batch batch{.size = 1, .columns = {}};
  for (size_t i = 0; i < xs.size(); ++i) {
    batch.columns.emplace_back("x" + std::to_string(i), numbers(f.shapes[i]));
  }
  if (f.name == "cumprod") {
    const auto x = batch.columns[0].second.as<double>();
    x[1] = x[7] = x[9] = 0;  // one factor of a line, and two
  }
  const OutputViews outputs = exe.predict(batch);
  std::vector<Tensor> slopes;
  for (size_t i = 0; i < xs.size(); ++i) {
    slopes.push_back(outputs["d" + std::to_string(i)].copy());
  }
  for (size_t i = 0; i < xs.size(); ++i) {
    constexpr double kStep = 1e-5;
    for (double& v : batch.columns[i].second.as<double>()) {
      const double at = v;
      v = at + kStep;
      const double above = exe.predict(batch)["total"].item();
      v = at - kStep;
      const double below = exe.predict(batch)["total"].item();
      v = at;
      const auto element = &v - batch.columns[i].second.as<double>().data();
      EXPECT_NEAR(slopes[i].at(element), (above - below) / (2 * kStep), 1e-7)
          << f.name << " x" << i << "[" << element << "]";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gradients, SecondGradient, ::testing::ValuesIn(twice_differentiable()),
                         [](const auto& info) { return info.param.name; });

TEST(Gradients, RejectASecondGradientOfDropout) {
  Program net("net");
  const Value w = net.parameter("w", {1, 1, 4, 4}, Init::zeros());
  const Value y = scaled_dot_product_attention(w, w, w, {.dropout = 0.5});
  const Value loss = sum(square(gradients(sum(square(y)), {w}).at(0)));
  net.output("loss", loss);
  minimize(loss, SGD{});
  expect_user_error([&] { Executor(net, cpu()).prepare({.train = {1}}); },
                    "with dropout has no gradient, but a gradient is taken through it");
}

}  // namespace
}  // namespace fluid::gradients_test
