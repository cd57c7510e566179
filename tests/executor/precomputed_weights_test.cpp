// predict() computes what depends on parameters and states alone once
// (passes/precompute_weights.h): it must follow every change of them. eval() computes the same
// outputs in each step.

#include <gtest/gtest.h>

#include <cmath>

#include "frontend/fluid.h"
#include "tests/support/golden_training.h"
#include "tests/support/temp_dir.h"

namespace fluid::precomputed_weights_test {
namespace {

/// A convolution without bias, batch norm and an average of the parameters.
Program network() {
  Program net("network");
  const Value x = net.data("x", {kBatch, 2, 6, 6}, f64);
  const Value h = relu(batch_norm(conv2d(x, {.filters = 3, .kernel = 3, .bias = false})));
  const Value y = linear(flatten(h), {.units = 2});
  net.output("y", y);
  minimize(mean(square(y)), Momentum{.lr = 0.05}, {.ema = {.decay = 0.5}});
  return net;
}

Batch batch_of(int64_t size) {
  return {size, {{"x", testing::golden_tensor(1, {size, 2, 6, 6})}}, 0};
}

void expect_predict_follows(Executor& exe, int64_t size = 4) {
  const Batch batch = batch_of(size);
  const Tensor evaluated = exe.eval(batch)["y"].copy();
  const Tensor predicted = exe.predict(batch)["y"].copy();
  for (int64_t i = 0; i < evaluated.numel(); ++i) {
    EXPECT_NEAR(predicted.at(i), evaluated.at(i), 1e-12) << i;
  }
}

TEST(PrecomputedWeights, FollowTraining) {
  Executor exe(network(), cpu());
  expect_predict_follows(exe);
  for (int step = 0; step < 3; ++step) {
    const double before = exe.predict(batch_of(4))["y"].at(0);
    exe.run(batch_of(4));
    EXPECT_NE(exe.predict(batch_of(4))["y"].at(0), before);
    expect_predict_follows(exe);
  }
}

TEST(PrecomputedWeights, FollowAssignments) {
  Executor exe(network(), cpu());
  exe.run(batch_of(4));
  expect_predict_follows(exe);
  for (const std::string& name : exe.parameters()) {
    SCOPED_TRACE(name);
    Tensor value = exe.parameter(name).copy();
    value.as<double>()[0] += 0.25;
    exe.set_parameter(name, value);
    expect_predict_follows(exe);
  }
}

TEST(PrecomputedWeights, FollowFilesSnapshotsAndAverages) {
  const TempDir dir;
  Executor exe(network(), cpu());
  exe.run(batch_of(4));
  exe.save(dir.file("early.safetensors"));
  for (int step = 0; step < 3; ++step) exe.run(batch_of(4));
  expect_predict_follows(exe);
  Executor other(network(), cpu());
  other.run(batch_of(4));
  expect_predict_follows(other);
  EXPECT_EQ(other.restore(exe.snapshot()), "");
  expect_predict_follows(other);
  const double late = exe.predict(batch_of(4))["y"].at(0);
  for (const bool averages : {true, false}) {
    exe.use_averages(averages);
    expect_predict_follows(exe);
  }
  EXPECT_EQ(exe.predict(batch_of(4))["y"].at(0), late);
  exe.load(dir.file("early.safetensors"));
  expect_predict_follows(exe);
  EXPECT_NE(exe.predict(batch_of(4))["y"].at(0), late);
}

/// Grouped, depthwise and plain convolutions with batch norm, in f32, for which oneDNN may want
/// blocked filters.
TEST(PrecomputedWeights, OfAllKindsOfConvolutionsInF32) {
  Program net("convolutions");
  Value h = net.data("x", {kBatch, 16, 8, 8}, f32);
  for (const int64_t groups : {1, 4, 16, 1}) {
    h = conv2d(h, {.filters = 16, .kernel = 3, .padding = 1, .groups = groups, .bias = false});
    h = relu(batch_norm(h));
  }
  net.output("y", h);
  minimize(mean(square(h - 1)), SGD{.lr = 0.1});
  Executor exe(net, cpu());
  for (const int64_t size : {2, 1}) {
    const Batch batch{size, {{"x", testing::golden_tensor(1, {size, 16, 8, 8}).cast(f32)}}, 0};
    exe.run(batch);
    const Tensor evaluated = exe.eval(batch)["y"].copy();
    const Tensor predicted = exe.predict(batch)["y"].copy();
    for (int64_t i = 0; i < evaluated.numel(); ++i) {
      EXPECT_NEAR(predicted.at(i), evaluated.at(i), 1e-4) << i;
    }
  }
}

/// oneDNN reads filters in blocks of 16 to 64 output channels, which do not divide these.
TEST(PrecomputedWeights, OfFiltersWhoseLastBlockIsPadded) {
  Program net("padded");
  Value h = net.data("x", {kBatch, 64, 7, 7}, f32);
  h = relu(conv2d(h, {.filters = 504, .kernel = 1}));
  h = relu(conv2d(h, {.filters = 248, .kernel = 3, .padding = 1}));
  h = relu(conv2d(h, {.filters = 1000, .kernel = 1}));
  net.output("y", h);
  Executor exe(net, cpu());
  const Batch batch{1, {{"x", testing::golden_tensor(1, {1, 64, 7, 7}).cast(f32)}}, 0};
  for (const double change : {0.0, 0.25}) {
    for (const std::string& name : exe.parameters()) {
      Tensor value = exe.parameter(name).copy();
      for (float& v : value.as<float>()) v += static_cast<float>(change);
      exe.set_parameter(name, value);
    }
    const Tensor evaluated = exe.eval(batch)["y"].copy();
    const Tensor predicted = exe.predict(batch)["y"].copy();
    for (int64_t i = 0; i < evaluated.numel(); ++i) {
      ASSERT_NEAR(predicted.at(i), evaluated.at(i), 1e-4 * (1 + std::abs(evaluated.at(i)))) << i;
    }
  }
}

/// The gradient of a mean over the batch is the weight divided by the batch size.
TEST(PrecomputedWeights, DoNotDependOnTheBatchSize) {
  Program net("gradient");
  const Value x = net.data("x", {kBatch, 2}, f32);
  const Value w = net.parameter("w", {2}, Init::constant(8));
  net.output("dx", gradients(sum(mean(x, {.axes = {0}}) * w), {x})[0]);
  Executor exe(net, cpu());
  for (const int64_t size : {1, 2, 4}) {
    const Batch batch{size, {{"x", testing::golden_tensor(1, {size, 2}).cast(f32)}}, 0};
    EXPECT_EQ(exe.predict(batch)["dx"].at(0), 8.0 / static_cast<double>(size));
  }
}

TEST(PrecomputedWeights, AreSharedByAllBatchSizes) {
  Executor exe(network(), cpu());
  exe.prepare({.predict = {4}});
  const int64_t state = exe.memory().state;
  exe.prepare({.predict = {1, 2, 3}});
  EXPECT_EQ(exe.memory().state, state);
  for (const int64_t size : {1, 2, 3, 4}) expect_predict_follows(exe, size);
}

/// An output is valid until the second step after it, also if weights are recomputed in between.
TEST(PrecomputedWeights, KeepTheOutputsOfTheStepBefore) {
  Executor exe(network(), cpu());
  const OutputViews first = exe.predict(batch_of(4));
  const double value = first["y"].at(0);
  const std::string name = exe.parameters().front();
  Tensor weight = exe.parameter(name).copy();
  weight.as<double>()[0] += 1;
  exe.set_parameter(name, weight);
  exe.predict(batch_of(4));
  EXPECT_EQ(first["y"].at(0), value);
}

TEST(PrecomputedWeights, AreNotSaved) {
  const TempDir dir;
  Executor exe(network(), cpu());
  exe.predict(batch_of(4));
  for (const std::string& name : exe.parameters()) {
    EXPECT_EQ(name.find("precomputed"), std::string::npos) << name;
  }
  exe.save(dir.file("p.safetensors"));
  Executor other(network(), cpu());
  EXPECT_TRUE(other.load(dir.file("p.safetensors")).unused.empty());
}

}  // namespace
}  // namespace fluid::precomputed_weights_test
