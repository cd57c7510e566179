// Steps run asynchronously on a GPU, here a host that stands in for one. Their results are those of
// synchronous steps, at any pace and whenever the host reads them.

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ops/functions.h"
#include "tests/support/errors.h"
#include "tests/support/gpu_training.h"
#include "tests/support/host_gpu_test.h"
#include "tests/support/temp_dir.h"

namespace fluid::gpu_steps_test {
namespace {

using fluid::testing::batch_of;
using fluid::testing::host_gpu_copied;
using fluid::testing::host_gpu_objects;
using fluid::testing::host_gpu_overlaps;
using fluid::testing::HostPace;
using fluid::testing::small_network;
using fluid::testing::stand_in;
using fluid::testing::state_of;

constexpr int64_t kSamples = 4;

/// Labels of 3 classes, a dense layer, dropout.
Program classifier() {
  Program net("classifier");
  const Value x = net.data("x", {kBatch, 3}, f32);
  const Value label = net.data("label", {kBatch}, i64);
  const Value logits = linear(dropout(linear(x, {.units = 5}), {.p = 0.25}), {.units = 3});
  const Value loss = mean(softmax_cross_entropy(logits, label));
  net.output("loss", loss);
  net.output("accuracy", accuracy(logits, label));
  minimize(loss, Momentum{.lr = 0.05}, {.schedule = Cosine{.steps = 60, .warmup = 4}});
  return net;
}

/// Fills a batch that is used again and again, as by a reader's thread.
void fill(Batch& batch, int64_t number) {
  const auto x = batch.columns[0].second.as<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(static_cast<float>(i) + static_cast<float>(number) * 3.7f);
  }
  const auto label = batch.columns[1].second.as<int64_t>();
  for (size_t i = 0; i < label.size(); ++i) label[i] = (static_cast<int64_t>(i) + number) % 3;
}

Batch samples(int64_t number, int64_t n = kSamples) {
  Batch batch{.size = n, .columns = {{"x", Tensor(f32, {n, 3})}, {"label", Tensor(i64, {n})}}};
  fill(batch, number);
  return batch;
}

Batch bad_samples(int64_t number, int64_t sample) {
  Batch batch = samples(number);
  batch.columns[1].second.as<int64_t>()[static_cast<size_t>(sample)] = 7;
  return batch;
}

/// The results of a step.
struct StepResults {
  double loss = 0, right = 0, rate = 0, scale = 0;
  int64_t skipped = 0;
  bool operator==(const StepResults&) const = default;
};

StepResults told(const OutputViews& outputs) {
  const auto scaling = outputs.loss_scaling().value_or(LossScaling());
  return {.loss = outputs["loss"].item(),
          .right = outputs.find("accuracy").statistics.at(0),
          .rate = outputs.learning_rate().value_or(0),
          .scale = scaling.scale,
          .skipped = scaling.skipped};
}

struct Trained {
  std::vector<StepResults> steps;
  std::vector<std::byte> middle, end;
  bool operator==(const Trained&) const = default;
};

/// Trains from one batch buffer. Reads the results of a step after `late` more steps have started.
Trained trained(int steps, int late, const ExecutorOptions& options) {
  Executor exe(classifier(), stand_in(), options);
  Trained run;
  Batch batch = samples(0);
  std::optional<OutputViews> before;
  for (int step = 0; step < steps; ++step) {
    fill(batch, step);
    const OutputViews outputs = exe.run(batch);
    fill(batch, 1000);
    if (before) run.steps.push_back(told(*before));
    before.reset();
    if (late > 0) {
      before = outputs;
    } else {
      run.steps.push_back(told(outputs));
    }
    if (step == steps / 2) run.middle = state_of(exe);
  }
  if (before) run.steps.push_back(told(*before));
  run.end = state_of(exe);
  return run;
}

class GpuSteps : public testing::HostGpuPaceTest {
 protected:
  static void reset(const testing::TestedPace& pace) {
    fluid::testing::reset_host_gpu(pace.options());
  }
};

TEST_P(GpuSteps, GiveTheBitsOfStepsThatAreWaitedFor) {
  reset(testing::kEarly);
  const Trained expected = trained(50, 0, {.batch = kSamples});
  for (const bool prefetch : {true, false}) {
    reset(GetParam());
    EXPECT_EQ(trained(50, 1, {.batch = kSamples, .gpu = {.prefetch = prefetch}}), expected)
        << prefetch;
  }
}

/// Each step reports its own loss scale and number of skipped steps, although the next step has
/// started.
TEST_P(GpuSteps, TellWhichWereSkipped) {
  const ExecutorOptions options{
      .batch = kSamples,
      .precision = {.amp = AmpOptions{.dtype = f16, .loss_scale = {.initial = 1 << 24}}}};
  reset(testing::kEarly);
  const Trained expected = trained(16, 0, options);
  EXPECT_GT(expected.steps.back().skipped, 2);
  EXPECT_LT(expected.steps.front().skipped, expected.steps.back().skipped);
  reset(GetParam());
  EXPECT_EQ(trained(16, 1, options), expected);
}

/// A slot is written for the next step while the step before still reads what it held.
TEST_P(GpuSteps, ReadFeedsThatStayWhereTheyAre) {
  const auto losses = [](bool wait, bool prefetch) {
    Executor exe(classifier(), stand_in(), {.batch = kSamples, .gpu = {.prefetch = prefetch}});
    std::vector<double> all;
    std::optional<OutputViews> before;
    for (const int64_t id : {1, 1, 2, 1, 2, 2, 3, 3, 3, 4, 1, 1, 4, 4, 5}) {
      Batch batch = samples(id);
      batch.id = static_cast<uint64_t>(id);
      const OutputViews outputs = exe.run(batch);
      if (wait) outputs.wait();
      if (before) all.push_back((*before)["loss"].item());
      before = outputs;
    }
    return all;
  };
  reset(testing::kEarly);
  const std::vector<double> expected = losses(true, true);
  for (const bool prefetch : {true, false}) {
    reset(GetParam());
    EXPECT_EQ(losses(false, prefetch), expected) << prefetch;
  }
}

/// Training and evaluation take turns, and other sizes come: the slots are used by all.
TEST_P(GpuSteps, OfAllModesFollowEachOther) {
  const auto figures = [](bool wait, bool prefetch) {
    Executor exe(classifier(), stand_in(), {.gpu = {.prefetch = prefetch}});
    std::vector<StepResults> all;
    std::optional<OutputViews> before;
    for (int step = 0; step < 12; ++step) {
      const Batch batch = samples(step, step % 4 == 3 ? 3 : kSamples);
      const OutputViews outputs = step % 3 == 1 ? exe.eval(batch) : exe.run(batch);
      if (wait) outputs.wait();
      if (before) all.push_back(told(*before));
      before = outputs;
    }
    return all;
  };
  reset(testing::kEarly);
  const std::vector<StepResults> expected = figures(true, true);
  for (const bool prefetch : {true, false}) {
    reset(GetParam());
    EXPECT_EQ(figures(false, prefetch), expected) << prefetch;
  }
}

/// A call that reports that step 2 was rejected, after step 3 has started, and the step that its
/// message names.
struct ErrorReport {
  const char* name;
  const char* step;
  std::function<void(Executor&, const OutputViews& refused, const OutputViews& next)> by;
};

std::vector<ErrorReport> error_reports(const std::string& file) {
  return {
      {"its outputs", "", [](Executor&, const OutputViews& o, const OutputViews&) { o.wait(); }},
      {"the next one's", "in the previous step: ",
       [](Executor&, const OutputViews&, const OutputViews& o) { o["loss"]; }},
      {"run", "in the second step before this one: ",
       [](Executor& e, const OutputViews&, const OutputViews&) { e.run(samples(9)); }},
      {"eval", "in the second step before this one: ",
       [](Executor& e, const OutputViews&, const OutputViews&) { e.eval(samples(9)); }},
      {"parameter", "in the step before the last one: ",
       [](Executor& e, const OutputViews&, const OutputViews&) { e.parameter("fc0.w"); }},
      {"snapshot", "in the step before the last one: ",
       [](Executor& e, const OutputViews&, const OutputViews&) { e.snapshot(); }},
      {"save", "in the step before the last one: ",
       [file](Executor& e, const OutputViews&, const OutputViews&) { e.save(file); }},
      {"prepare", "in the step before the last one: ",
       [](Executor& e, const OutputViews&, const OutputViews&) { e.prepare({.train = {7}}); }}};
}

TEST_P(GpuSteps, OneThatIsRejectedIsToldLaterAndNoneAfterItIsApplied) {
  const TempDir dir;
  for (const ErrorReport& error_report : error_reports(dir.file("parameters.safetensors"))) {
    Executor exe(classifier(), stand_in(), {.batch = kSamples});
    exe.prepare({.eval = {kSamples}});
    exe.run(samples(0));
    exe.run(samples(1));
    const std::vector<std::byte> before = state_of(exe);
    Batch batch = bad_samples(2, 3);
    const OutputViews refused = exe.run(batch);
    fill(batch, 3);
    const OutputViews next = exe.run(batch);
    const std::string why =
        "value 7 of feed 'label' is out of range [0, 3), in sample 3 of the batch; the step was "
        "not applied, nor was the step after it";
    const std::string heard = error_of<UserError>([&] { error_report.by(exe, refused, next); });
    EXPECT_EQ(state_of(exe), before) << error_report.name;
    const std::string own = error_of<UserError>([&] { refused.wait(); });
    EXPECT_TRUE(own.starts_with("gpu_steps_test.cpp:") && own.ends_with(why)) << own;
    EXPECT_EQ(heard, error_report.step + own);
    EXPECT_TRUE(states(error_of<UserError>([&] { next.wait(); }), "in the previous step: " + own));
    exe.run(samples(4)).wait();
    Executor other(classifier(), stand_in(), {.batch = kSamples});
    for (const int64_t number : {0, 1, 4}) other.run(samples(number));
    EXPECT_EQ(state_of(exe), state_of(other))
        << error_report.name << ": it goes on as if nothing was";
  }
}

TEST_P(GpuSteps, TheLastThatWasBegunIsCalledSo) {
  Executor exe(classifier(), stand_in(), {.batch = kSamples});
  const OutputViews refused = exe.run(bad_samples(0, 3));
  const std::string heard = error_of<UserError>([&] { exe.parameter("fc0.w"); });
  EXPECT_EQ(heard, "in the last step: " + error_of<UserError>([&] { refused.wait(); }));
}

/// Inference also rejects bad data. Training that was started afterwards stops there, as on the
/// CPU.
TEST_P(GpuSteps, AnEvaluationThatIsRejectedHoldsTrainingUp) {
  Executor exe(classifier(), stand_in(), {.batch = kSamples});
  exe.prepare({.eval = {kSamples}});
  exe.run(samples(0));
  const std::vector<std::byte> before = state_of(exe);
  const OutputViews refused = exe.eval(bad_samples(1, 0));
  exe.run(samples(2));
  expect_user_error([&] { refused.wait(); }, "in sample 0 of the batch; the step was not applied");
  EXPECT_EQ(state_of(exe), before);
  exe.run(samples(2)).wait();
  EXPECT_NE(state_of(exe), before);
}

/// A search does not stop later steps.
TEST_P(GpuSteps, ASearchOnBadDataHoldsNothingUp) {
  Executor exe(classifier(), stand_in(), {.batch = kSamples, .debug = {.check_finite = true}});
  exe.run(samples(0));
  const std::vector<std::byte> before = state_of(exe);
  exe.first_nonfinite(bad_samples(0, 1));
  EXPECT_EQ(state_of(exe), before);
  exe.run(samples(1)).wait();
  EXPECT_NE(state_of(exe), before);
}

TEST_P(GpuSteps, TwoThatAreRejectedAreToldOneByOne) {
  Executor exe(classifier(), stand_in(), {.batch = kSamples});
  exe.run(samples(0));
  const std::vector<std::byte> before = state_of(exe);
  exe.run(bad_samples(1, 1));
  exe.run(bad_samples(2, 2));
  expect_user_error([&] { exe.run(samples(3)); }, "in sample 1 of the batch");
  EXPECT_EQ(state_of(exe), before);
  expect_user_error([&] { exe.run(bad_samples(4, 3)).wait(); }, "in sample 3 of the batch");
  exe.run(samples(5)).wait();
  EXPECT_NE(state_of(exe), before);
}

/// The rejected step reads feeds of an earlier step, which stay in the slot until the step is
/// complete.
TEST_P(GpuSteps, OfFeedsThatStayAreToldWithTheirSample) {
  Executor exe(classifier(), stand_in(), {.gpu = {.prefetch = false}});
  exe.prepare({.eval = {kSamples}});
  Batch bad = bad_samples(0, 3), other = bad_samples(1, 0);
  bad.id = 1;
  other.id = 2;
  expect_user_error([&] { exe.eval(bad).wait(); }, "in sample 3 of the batch");
  const OutputViews again = exe.eval(bad);
  expect_user_error([&] { exe.eval(other); }, "in sample 3 of the batch; the step was not applied");
  expect_user_error([&] { again.wait(); }, "in sample 3 of the batch; the step was not applied");
}

/// With a single feed slot, the call that copies the next feeds reports the rejection, while the
/// slot still holds the rejected feeds.
TEST_P(GpuSteps, OfFeedsWithOneSlotAreToldBeforeTheNextAreCopied) {
  Executor exe(classifier(), stand_in(), {.batch = kSamples, .gpu = {.prefetch = false}});
  const OutputViews good = exe.run(samples(0));
  const std::vector<std::byte> before = state_of(exe);
  exe.run(bad_samples(1, 3));
  expect_user_error([&] { exe.run(samples(2)); }, "in the previous step: ");
  EXPECT_TRUE(std::isfinite(good["loss"].item())) << "no other step was begun";
  EXPECT_EQ(state_of(exe), before);
  const OutputViews refused = exe.run(bad_samples(1, 3));
  expect_user_error([&] { exe.run(bad_samples(2, 0)); }, "in sample 3 of the batch");
  expect_user_error([&] { refused.wait(); }, "in sample 3 of the batch");
  exe.run(samples(3)).wait();
  EXPECT_NE(state_of(exe), before);
}

/// A network with running statistics, in micro-batches.
TEST_P(GpuSteps, OfMicroBatchsAreRejectedByTheBatchsSample) {
  Executor exe(small_network(), stand_in(), {.batch = 4, .micro_batches = 2});
  Batch bad = batch_of(4, 1);
  bad.columns[1].second.as<int64_t>()[3] = 3;
  expect_user_error([&] { exe.run(bad); }, "in sample 3 of the batch; the step was not applied");
}

/// One launch for the rejected micro-batch, and two for the next step.
TEST_P(GpuSteps, EndWithTheMicroBatchThatIsRejected) {
  Executor exe(classifier(), stand_in(), {.batch = kSamples, .micro_batches = 2});
  const std::vector<std::byte> before = state_of(exe);
  fluid::testing::fail_host_gpu("graph_launch", fluid_gpu_failed, 3);
  expect_user_error([&] { exe.run(bad_samples(0, 1)); }, "in sample 1 of the batch");
  EXPECT_EQ(state_of(exe), before);
  exe.run(samples(1)).wait();
  EXPECT_NE(state_of(exe), before);
  EXPECT_THROW(exe.run(samples(2)), DeviceError);
}

TEST_P(GpuSteps, MayBeUnderWayWhenTheExecutorGoes) {
  Tensor kept;
  {
    Executor exe(classifier(), stand_in(), {.batch = kSamples});
    kept = exe.run(samples(0))["loss"];
    exe.run(samples(1));
    exe.run(bad_samples(2, 0));
  }
  EXPECT_TRUE(std::isfinite(kept.item()));
}

/// The error is not reported any more. Copies from earlier steps stay valid, and all objects are
/// freed.
TEST_P(GpuSteps, MayFailWhenTheExecutorGoes) {
  for (const FluidGpuResult result :
       {fluid_gpu_failed, fluid_gpu_out_of_memory, fluid_gpu_invalid_usage}) {
    for (const int calls : {0, 1}) {
      Tensor kept;
      {
        Executor exe(classifier(), stand_in(), {.batch = kSamples});
        kept = exe.run(samples(0))["loss"];
        exe.run(samples(1));
        exe.run(samples(2));
        fluid::testing::fail_host_gpu("event_synchronize", result, calls);
      }
      EXPECT_TRUE(std::isfinite(kept.item()));
      kept = {};
      EXPECT_EQ(host_gpu_objects(), 0) << result << " " << calls;
      reset(GetParam());
    }
  }
}

TEST_P(GpuSteps, AFailureIsToldByWhoWaits) {
  Executor exe(classifier(), stand_in(), {.batch = kSamples});
  const OutputViews outputs = exe.run(samples(0));
  const OutputViews next = exe.run(samples(1));
  fluid::testing::fail_host_gpu("event_synchronize", fluid_gpu_failed);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(states(error_of<DeviceError>([&] { outputs.wait(); }),
                       "event_synchronize was told to fail"));
  }
  EXPECT_THROW(next.wait(), DeviceError);
  EXPECT_THROW(exe.run(samples(2)), DeviceError);
}

INSTANTIATE_TEST_SUITE_P(Pace, GpuSteps, testing::kPaces, testing::name_of);
INSTANTIATE_TEST_SUITE_P(Long, GpuSteps,
                         ::testing::Values(testing::kEarly,
                                           testing::TestedPace{"random_1", HostPace::random, 1}),
                         testing::name_of);

class GpuOverlap : public testing::HostGpuTest {
 protected:
  void SetUp() override { fluid::testing::reset_host_gpu(testing::kLate.options()); }
};

TEST_F(GpuOverlap, RunReturnsBeforeTheStepIsDone) {
  Executor exe(classifier(), stand_in(), {.batch = kSamples});
  exe.run(samples(0)).wait();
  const int before = host_gpu_overlaps();
  for (int step = 0; step < 10; ++step) exe.run(samples(step));
  EXPECT_EQ(host_gpu_overlaps() - before, 9);
  exe.parameter("fc0.w");
  const int then = host_gpu_overlaps();
  for (int step = 0; step < 10; ++step) exe.run(samples(step)).wait();
  EXPECT_EQ(host_gpu_overlaps(), then);
}

/// One slot is enough for what stays there; other feeds wait for the step that reads them.
TEST_F(GpuOverlap, WithoutPrefetchOnlyABatchThatStaysDoesNotWait) {
  Executor exe(classifier(), stand_in(), {.batch = kSamples, .gpu = {.prefetch = false}});
  Batch batch = samples(0);
  batch.id = 1;
  exe.run(batch).wait();
  const int before = host_gpu_overlaps();
  for (int step = 0; step < 10; ++step) exe.run(batch);
  EXPECT_EQ(host_gpu_overlaps() - before, 9);
  exe.run(samples(1)).wait();
  const int then = host_gpu_overlaps();
  for (int step = 0; step < 10; ++step) exe.run(samples(step));
  EXPECT_EQ(host_gpu_overlaps(), then);
}

/// A second slot for feeds is all that it takes.
TEST_F(GpuOverlap, PrefetchTakesTheMemoryOfASecondSlot) {
  const auto slots = [](bool prefetch) {
    return Executor(classifier(), stand_in(), {.batch = kSamples, .gpu = {.prefetch = prefetch}})
        .memory();
  };
  const MemoryUse with = slots(true), without = slots(false);
  const int64_t feeds = 2 * 64;  // 4 x 3 x f32 and 4 x i64, each in a cache line
  EXPECT_EQ(with.slots - without.slots, feeds);
  EXPECT_EQ(with.total - without.total, feeds);
  const MemoryUse on_cpu = Executor(classifier(), cpu(), {.batch = kSamples}).memory();
  EXPECT_EQ(on_cpu.slots, without.slots) << "where a step is done when the next begins";
}

/// Reading the outputs of the previous step does not delay the next step.
TEST_F(GpuOverlap, ReadingOneStepLateDoesNotWait) {
  Executor exe(classifier(), stand_in(), {.batch = kSamples});
  std::optional<OutputViews> before = exe.run(samples(0));
  const int overlaps = host_gpu_overlaps();
  for (int step = 1; step <= 10; ++step) {
    const OutputViews outputs = exe.run(samples(step));
    told(*before);
    before = outputs;
  }
  EXPECT_EQ(host_gpu_overlaps() - overlaps, 10);
}

TEST_F(GpuOverlap, OutputsAreGoneWithTheSecondStepAfterTheirs) {
  for (const bool on_gpu : {false, true}) {
    Executor exe = on_gpu ? Executor(classifier(), stand_in(), {.batch = kSamples})
                          : Executor(classifier(), cpu(), {.batch = kSamples});
    const OutputViews first = exe.run(samples(0));
    const OutputViews second = exe.run(samples(1));
    EXPECT_NE(first["loss"].item(), second["loss"].item());
    exe.run(samples(2));
    EXPECT_TRUE(second.contains("loss"));
    EXPECT_TRUE(std::isfinite(second["loss"].item()));
    EXPECT_EQ(first.size(), 2U);
    expect_user_error([&] { first["loss"]; },
                      "outputs are read after two later steps, which reuse their memory: read them "
                      "earlier, or keep a copy()");
  }
}

constexpr int64_t kRows = 512;  // rows of 513 f32: more than 1 MiB in total

Program large() {
  Program net("large");
  const Value x = net.data("x", {kBatch, 513}, f32);
  net.output("sum", sum(x));
  net.output("twice", add(x, x));
  return net;
}

Batch constant(float value) {
  Tensor x(f32, {kRows, 513});
  std::ranges::fill(x.as<float>(), value);
  return {.size = kRows, .columns = {{"x", x}}};
}

TEST_F(GpuOverlap, WhatIsLargeIsCopiedWhenItIsAskedFor) {
  constexpr int64_t kBytes = kRows * 513 * 4;
  Executor exe(large(), stand_in(), {});
  exe.prepare({.predict = {kRows}});
  const int64_t begin = host_gpu_copied();
  const OutputViews first = exe.predict(constant(1)), second = exe.predict(constant(2));
  double seen = 0;
  first.for_each_scalar([&](const OutputView& o) { seen += o.value.item(); });
  EXPECT_EQ(seen, kRows * 513);
  second.wait();
  const int64_t fed = host_gpu_copied() - begin;
  EXPECT_GE(fed, 2 * kBytes);
  EXPECT_LT(fed, 2 * kBytes + 4096) << "the feeds, and nothing large besides";
  for (int again = 0; again < 2; ++again) EXPECT_EQ(first["twice"].at(kBytes / 4 - 1), 2);
  EXPECT_EQ(host_gpu_copied() - begin - fed, kBytes);
  for (const OutputView& o : second) {
    EXPECT_EQ(o.value.at(0), o.name == "twice" ? 4 : 2 * kRows * 513);
  }
}

/// Where another size is prepared, its products are timed where results will be.
TEST_F(GpuOverlap, WhatIsLargeOutlivesThePreparationOfAnotherSize) {
  const TempDir dir;
  Program net("product");
  const Value x = net.data("x", {kBatch, 64}, f32);
  net.output("y", linear(x, {.units = 640}));
  Executor exe(net, gpu_device(fluid::testing::host_gpu_table(), {.cache_dir = dir.path()}));
  const auto rows = [](int64_t n, float value) {
    Tensor x(f32, {n, 64});
    std::ranges::fill(x.as<float>(), value);
    return Batch{.size = n, .columns = {{"x", x}}};
  };
  exe.prepare({.predict = {kRows}});
  const OutputViews first = exe.predict(rows(kRows, 1)), second = exe.predict(rows(kRows, 2));
  exe.prepare({.predict = {kRows + 1}});
  const double of_1 = first["y"].at(700), of_2 = second["y"].at(700);
  EXPECT_EQ(exe.predict(rows(kRows, 1))["y"].at(700), of_1);
  EXPECT_EQ(exe.predict(rows(kRows, 2))["y"].at(700), of_2);
  EXPECT_NE(of_1, of_2);
}

}  // namespace
}  // namespace fluid::gpu_steps_test
