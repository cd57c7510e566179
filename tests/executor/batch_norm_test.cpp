// Batch normalisation in a session: the batch's statistics in training, the running ones otherwise.

#include <gtest/gtest.h>

#include <cmath>

#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ops/operators.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/training.h"

namespace fluid::batch_norm_test {
namespace {

constexpr int64_t kSamples = 4;

Program normalising_program() {
  Program net("norm");
  const Value x = net.data("x", {kBatch, 2, 3}, f32);
  const Value y = batch_norm(x, {.momentum = 0.25});
  net.output("y", y);
  minimize(mean(square(y - 1.0)), SGD{.lr = 0.5});
  return net;
}

Batch batch_of(double scale) {
  Tensor x(f32, {kSamples, 2, 3});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.as<float>()[static_cast<size_t>(i)] = static_cast<float>(scale * std::sin(7.0 * double(i)));
  }
  return {kSamples, {{"x", x}}, 0};
}

struct Moments {
  double mean = 0, var = 0;
};
Moments moments_of(const Tensor& x, int64_t channel) {
  std::vector<double> values;
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (i / 3 % 2 == channel) values.push_back(x.at(i));
  }
  Moments m;
  for (double v : values) m.mean += v / static_cast<double>(values.size());
  for (const double v : values) {
    m.var += (v - m.mean) * (v - m.mean) / static_cast<double>(values.size());
  }
  return m;
}

TEST(BatchNorm, MovesTheRunningStatistics) {
  const Program net = normalising_program();
  Executor exe(net, cpu(), {.batch = kSamples});
  const double n = kSamples * 3;
  double mean = 0, var = 1;
  for (const double scale : {1.0, 2.0}) {
    const Batch batch = batch_of(scale);
    exe.run(batch);
    const Moments m = moments_of(*batch.find("x"), 1);
    mean += 0.25 * (m.mean - mean);
    var += 0.25 * (m.var * n / (n - 1) - var);
  }
  EXPECT_NEAR(exe.parameter("bn0.running_mean").at(1), mean, 1e-6);
  EXPECT_NEAR(exe.parameter("bn0.running_var").at(1), var, 1e-6);
}

TEST(BatchNorm, TrainingNormalisesByTheBatch) {
  const Program net = normalising_program();
  Executor exe(net, cpu(), {.batch = kSamples});
  const Tensor y = exe.run(batch_of(3))["y"].copy();
  const Moments m = moments_of(y, 0);
  EXPECT_NEAR(m.mean, 0, 1e-6);
  EXPECT_NEAR(m.var, 1, 1e-4);
}

TEST(BatchNorm, EvalUsesTheRunningStatisticsAndChangesNothing) {
  const Program net = normalising_program();
  Executor exe(net, cpu());
  exe.prepare({.train = {kSamples}, .eval = {kSamples}, .predict = {kSamples}});
  exe.run(batch_of(1));
  const auto before = parameter_bytes(exe);
  const Batch batch = batch_of(2);
  const Tensor y = exe.eval(batch)["y"].copy();
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t c = i / 3 % 2;
    const double xhat = (batch.find("x")->at(i) - exe.parameter("bn0.running_mean").at(c)) /
                        std::sqrt(exe.parameter("bn0.running_var").at(c) + 1e-5);
    const double expected =
        xhat * exe.parameter("bn0.gamma").at(c) + exe.parameter("bn0.beta").at(c);
    EXPECT_NEAR(y.at(i), expected, 1e-5);
    EXPECT_EQ(exe.predict(batch)["y"].at(i), y.at(i));
  }
  EXPECT_EQ(parameter_bytes(exe), before);
}

TEST(BatchNorm, FilesHoldTheRunningStatistics) {
  const Program net = normalising_program();
  const TempDir dir;
  Executor exe(net, cpu(), {.batch = kSamples});
  exe.run(batch_of(1));
  exe.save(dir.file("norm.safetensors"));
  Executor loaded(net, cpu(), {.seed = 7});
  loaded.prepare({.eval = {kSamples}});
  loaded.load(dir.file("norm.safetensors"));
  EXPECT_EQ(parameter_bytes(loaded), parameter_bytes(exe));
  EXPECT_EQ(loaded.parameters().size(), 4u);
}

TEST(BatchNorm, NeedsChannels) {
  Program net("norm");
  const Value x = net.data("x", {kBatch}, f32);
  expect_user_error([&] { batch_norm(x); },
                    "batch_norm: the input is f32[?], not a float [N, C, ...]");
}

}  // namespace
}  // namespace fluid::batch_norm_test
