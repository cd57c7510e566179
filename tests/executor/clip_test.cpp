// Clipped gradients, seen in what a step of SGD with rate 1 takes off parameters that start at 0:
// the gradient of sum(x v) + sum(y w) is x for v and y for w.

#include <gtest/gtest.h>

#include <cmath>

#include "executor/executor.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ops/operators.h"
#include "tests/support/errors.h"

namespace fluid::clip_test {
namespace {

const std::vector<double> kX = {3, -4, 0.5}, kY = {12, 0};

using Gradients = std::pair<std::vector<double>, std::vector<double>>;

Program summing_program(const Clip& clip) {
  Program net("summing");
  const Value x = net.data("x", {kBatch, 3}, f32), y = net.data("y", {kBatch, 2}, f32);
  const Value v = net.parameter("v", {3}, Init::zeros());
  const Value w = net.parameter("w", {2}, Init::zeros());
  const Value loss = sum(x * v) + sum(y * w);
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 1}, {.clip = clip});
  return net;
}

Tensor row(const std::vector<double>& values) {
  Tensor t(f32, {1, static_cast<int64_t>(values.size())});
  std::ranges::copy(values, t.as<float>().begin());
  return t;
}

std::vector<double> negated(const Tensor& t) {
  std::vector<double> values;
  for (int64_t i = 0; i < t.numel(); ++i) values.push_back(-t.at(i));
  return values;
}

Gradients clipped(const Clip& clip, ExecutorOptions options = {}) {
  const Program net = summing_program(clip);
  options.batch = 1;
  Executor exe(net, cpu(), options);
  exe.run({1, {{"x", row(kX)}, {"y", row(kY)}}, 0});
  return {negated(exe.parameter("v")), negated(exe.parameter("w"))};
}

double norm_of(const std::vector<double>& g) {
  double squares = 0;
  for (const double v : g) squares += v * v;
  return std::sqrt(squares);
}

void expect_scaled(const std::vector<double>& got, const std::vector<double>& from, double factor) {
  for (size_t i = 0; i < from.size(); ++i) EXPECT_NEAR(got.at(i), from[i] * factor, 1e-5) << i;
}

TEST(Clip, LeavesGradientsAloneUnlessAsked) {
  const Gradients g = clipped({});
  expect_scaled(g.first, kX, 1);
  expect_scaled(g.second, kY, 1);
}

TEST(Clip, ByValue) {
  const Gradients g = clipped({.value = 2.5});
  expect_scaled(g.first, {2.5, -2.5, 0.5}, 1);
  expect_scaled(g.second, {2.5, 0}, 1);
}

TEST(Clip, ByTheNormOfEach) {
  const Gradients g = clipped({.norm = 6});
  expect_scaled(g.first, kX, 1);  // shorter than 6
  expect_scaled(g.second, kY, 6 / (12 + 1e-6));
}

TEST(Clip, ByTheNormOfAll) {
  const double norm = std::hypot(norm_of(kX), norm_of(kY));
  const Gradients g = clipped({.global_norm = 1});
  expect_scaled(g.first, kX, 1 / (norm + 1e-6));
  expect_scaled(g.second, kY, 1 / (norm + 1e-6));
}

TEST(Clip, InMixedPrecisionIsOfTheUnscaledGradients) {
  const AmpOptions amp = {.dtype = f16, .loss_scale = {.initial = 1024}};
  for (const Clip& clip : {Clip{.value = 2.5}, Clip{.norm = 6}, Clip{.global_norm = 1}}) {
    const Gradients plain = clipped(clip), scaled = clipped(clip, {.precision = {.amp = amp}});
    expect_scaled(scaled.first, plain.first, 1);
    expect_scaled(scaled.second, plain.second, 1);
  }
}

TEST(Clip, RejectsANegativeNorm) {
  expect_user_error([] { summing_program({.norm = -1}); },
                    "attribute 'clip_norm' must be a number of 0.0 or more");
}

}  // namespace
}  // namespace fluid::clip_test
