// Compares a step in micro-batches with the same step on the whole batch.

#include <gtest/gtest.h>

#include <cmath>

#include "executor/session/prepared_step.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ops/operators.h"
#include "tests/support/errors.h"
#include "tests/support/training.h"

namespace fluid::micro_batches_test {
namespace {

constexpr int64_t kSamples = 11;

/// With dropout, clipping, a metric, an output of a row a sample; without batch statistics.
Program sliceable_program(bool normalised = false) {
  Program net("sliceable");
  const Value x = net.data("x", {kBatch, 1, 6, 6}, f32);
  const Value label = net.data("label", {kBatch}, i64);
  Value h = conv2d(x, {.filters = 4, .kernel = 3, .padding = 1});
  if (normalised) h = batch_norm(h);
  h = dropout(relu(h), {.p = 0.25});
  const Value scores = linear(flatten(max_pool2d(h, {.kernel = 2})), {.units = 3});
  const Value loss = mean(softmax_cross_entropy(scores, label));
  net.output("scores", scores);
  net.output("loss", loss);
  net.output("accuracy", accuracy(scores, label));
  minimize(loss, Adam{.lr = 0.01}, {.clip = {.global_norm = 0.5}});
  return net;
}

Batch batch_of(int64_t samples) {
  Tensor x(f32, {samples, 1, 6, 6}), label(i64, {samples});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.as<float>()[static_cast<size_t>(i)] = static_cast<float>(std::sin(3.0 * double(i)));
  }
  for (int64_t i = 0; i < samples; ++i) label.as<int64_t>()[static_cast<size_t>(i)] = i % 3;
  return {.size = samples, .columns = {{"x", x}, {"label", label}}};
}

/// The largest difference between `a`'s variable and `b`'s, over the largest element.
double distance(Executor& a, Executor& b, const std::string& name) {
  const Tensor x = a.parameter(name), y = b.parameter(name);
  double most = 0, size = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    most = std::max(most, std::abs(x.at(i) - y.at(i)));
    size = std::max(size, std::abs(x.at(i)));
  }
  return most / size;
}

TEST(Slices, CutABatchAsEvenlyAsPossible) {
  const std::vector<MicroBatch> slices = split_into_micro_batches(11, 3);
  ASSERT_EQ(slices.size(), 3U);
  const std::vector<int64_t> firsts = {0, 4, 8}, samples = {4, 4, 3};
  const std::vector<MicroBatchKind> kinds = {MicroBatchKind::first, MicroBatchKind::middle,
                                             MicroBatchKind::last};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(slices[i].first, firsts[i]);
    EXPECT_EQ(slices[i].samples, samples[i]);
    EXPECT_EQ(slices[i].kind, kinds[i]);
  }
  EXPECT_EQ(split_into_micro_batches(2, 5).size(), 2U);
  EXPECT_EQ(split_into_micro_batches(1, 5).front().kind, MicroBatchKind::whole);
  EXPECT_EQ(split_into_micro_batches(0, 5).front().kind, MicroBatchKind::empty);
}

TEST(MicroBatches, TrainAsTheWholeBatchDoes) {
  const Program net = sliceable_program();
  for (const DType dtype : {f64, f32}) {
    const double bound = dtype == f64 ? 1e-12 : 1e-5;
    const auto executor = [&](int64_t slices) {
      return Executor(net, cpu(),
                      {.batch = kSamples, .micro_batches = slices, .precision = {.dtype = dtype}});
    };
    for (const int64_t slices : dtype == f64 ? std::vector{2, 4, 50} : std::vector{4}) {
      Executor sliced = executor(slices), again = executor(1);
      for (int i = 0; i < 3; ++i) {
        const OutputViews expected = again.run(batch_of(kSamples));
        const OutputViews got = sliced.run(batch_of(kSamples));
        EXPECT_NEAR(got["loss"].item(), expected["loss"].item(), 10 * bound) << slices;
        EXPECT_EQ(got.find("accuracy").statistics.at(0),
                  expected.find("accuracy").statistics.at(0));
        EXPECT_EQ(got.find("accuracy").statistics.at(1), kSamples);
        ASSERT_EQ(got["scores"].shape(), expected["scores"].shape());
        for (int64_t s = 0; s < 3 * kSamples; ++s) {
          EXPECT_NEAR(got["scores"].at(s), expected["scores"].at(s), 100 * bound) << s;
        }
        for (const std::string name : {"conv0.w.m", "conv0.b.m", "fc0.w.m", "fc0.b.m"}) {
          if (i > 0) continue;  // from then on Adam divides differences by themselves
          EXPECT_LE(distance(again, sliced, name), bound) << name << " " << slices;
        }
      }
      EXPECT_EQ(sliced.parameter("update").item(), 3);
      EXPECT_EQ(sliced.parameter("rng").at(1), again.parameter("rng").at(1));
    }
  }
}

/// Feeds and outputs whose batch dimension is the second one.
TEST(MicroBatches, TakeAndGiveSamplesAlongAnyDimension) {
  Program net("transposed");
  const Value x = net.data("x", {3, kBatch, 2}, f32, {.scale = 0.5});
  const Value w = net.parameter("w", {2}, Init::constant(1));
  const Value scores = x * w;
  net.output("scores", scores);
  net.output("loss", mean(square(scores)));
  minimize(mean(square(scores)), SGD{.lr = 0.1});
  Tensor fed(f32, {3, kSamples, 2});
  for (int64_t i = 0; i < fed.numel(); ++i) {
    fed.as<float>()[static_cast<size_t>(i)] = static_cast<float>(i);
  }
  const Batch batch{.size = kSamples, .columns = {{"x", fed}}};
  Executor exe(net, cpu(), {.batch = kSamples, .micro_batches = 3});
  Executor whole(net, cpu(), {.batch = kSamples});
  const OutputViews got = exe.run(batch), expected = whole.run(batch);
  EXPECT_FLOAT_EQ(got["loss"].item(), expected["loss"].item());
  ASSERT_EQ(got["scores"].shape(), (std::vector<int64_t>{3, kSamples, 2}));
  for (int64_t i = 0; i < fed.numel(); ++i) EXPECT_EQ(got["scores"].at(i), fed.at(i) / 2) << i;
  EXPECT_LE(distance(whole, exe, "w"), 1e-6);
}

TEST(MicroBatches, TakeLessMemory) {
  const Program net = sliceable_program();
  const auto transient = [&](int64_t slices) {
    return Executor(net, cpu(), {.batch = 1024, .micro_batches = slices}).memory().transient;
  };
  EXPECT_LT(transient(8), transient(1) / 6) << "filters of a library kernel are of no sample";
}

TEST(MicroBatches, PrepareOtherSizesToo) {
  const Program net = sliceable_program();
  Executor exe(net, cpu(), {.batch = kSamples, .micro_batches = 4});
  exe.prepare({.train = {5, 1}, .eval = {kSamples}});
  for (const int64_t samples : {kSamples, int64_t{5}, int64_t{1}, kSamples}) {
    EXPECT_EQ(exe.run(batch_of(samples)).find("accuracy").statistics.at(1), samples);
  }
  EXPECT_EQ(exe.eval(batch_of(kSamples)).find("accuracy").statistics.at(1), kSamples);
  EXPECT_EQ(exe.parameter("update").item(), 4);
}

/// The samples [first, first + count) of a batch.
Batch part_of(const Batch& batch, int64_t first, int64_t count) {
  Batch part = batch_of(count);
  const int64_t elements = batch.columns[0].second.numel() / batch.size;
  std::copy_n(batch.columns[0].second.as<float>().data() + first * elements, count * elements,
              part.columns[0].second.as<float>().data());
  return part;
}

TEST(MicroBatches, RunningStatisticsTakeEverySlice) {
  const Program net = sliceable_program(true);
  const Batch batch = batch_of(8);
  Executor sliced(net, cpu(), {.batch = 8, .micro_batches = 2});
  sliced.run(batch);
  // Runs two steps on the halves of the batch, with equal parameters but continued running
  // statistics.
  Executor halves(net, cpu(), {.batch = 4});
  std::map<std::string, Tensor> initial;
  for (const std::string& name : halves.parameters()) {
    if (name.find("running") == std::string::npos) initial[name] = halves.parameter(name);
  }
  halves.run(part_of(batch, 0, 4));
  for (const auto& [name, value] : initial) halves.set_parameter(name, value);
  halves.run(part_of(batch, 4, 4));
  EXPECT_LE(distance(sliced, halves, "bn0.running_mean"), 1e-6);
  EXPECT_LE(distance(sliced, halves, "bn0.running_var"), 1e-6);
}

TEST(MicroBatches, BadDataInALaterMicroBatchIsRejected) {
  const Program net = sliceable_program();
  Executor exe(net, cpu(), {.batch = kSamples, .micro_batches = 3});
  const std::vector<std::byte> before = parameter_bytes(exe);
  Batch bad = batch_of(kSamples);
  bad.columns[1].second.as<int64_t>()[9] = 7;
  expect_user_error([&] { exe.run(bad); },
                    "value 7 of feed 'label' is out of range [0, 3), in sample 9 of the batch");
  EXPECT_EQ(parameter_bytes(exe), before);
}

TEST(MicroBatches, AreAtLeastOne) {
  expect_user_error([] { Executor(sliceable_program(), cpu(), {.micro_batches = 0}); },
                    "a step of 0 micro-batches");
}

}  // namespace
}  // namespace fluid::micro_batches_test
