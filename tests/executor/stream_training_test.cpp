// Training, evaluation and prediction on streams, whose length is unknown, against those on the
// same samples with an index.

#include <gtest/gtest.h>

#include <random>

#include "executor/comm/process_group.h"
#include "frontend/fluid.h"
#include "tests/support/errors.h"
#include "tests/support/processes.h"
#include "tests/support/source_stream.h"
#include "tests/support/temp_dir.h"
#include "tests/support/training.h"

namespace fluid::stream_training_test {
namespace {

using testing::Ranks;

constexpr int64_t kSamples = 25, kBatchSize = 10;  // batches of 10, 10 and 5

Program regression(float dropped = 0.2f) {
  Program net("regression");
  const Value x = net.data("x", {kBatch, 6}, f32), y = net.data("y", {kBatch, 1}, f32);
  const Value hidden = dropout(linear(x, {.units = 16, .act = Act::relu}), {.p = dropped});
  const Value p = linear(hidden, {.units = 1});
  const Value loss = mean(mse_loss(p, y));
  net.output("loss", loss);
  net.output("p", p);
  minimize(loss, Adam{.lr = 0.01});
  return net;
}

SampleSourcePtr points(int64_t n, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  Tensor x(f32, {n, 6}), y(f32, {n, 1});
  for (float& value : x.as<float>()) value = static_cast<float>(random() % 200) / 100 - 1;
  for (float& value : y.as<float>()) value = static_cast<float>(random() % 200) / 100 - 1;
  return make_source({.columns = {{"x", x}, {"y", y}}, .source = "points"});
}

SampleStreamPtr streamed(SampleSourcePtr source) {
  return std::make_shared<SourceStream>(std::move(source));
}

Trainer trainer_of(const CheckpointingOptions& checkpoints = {}, bool strict_shapes = false) {
  return Trainer(regression(), cpu(), {.seed = 5, .threads = 1, .strict_shapes = strict_shapes},
                 checkpoints);
}

/// The epochs as text, and the bytes of the parameters.
std::string result_of(Trainer& trainer, const History& history) {
  std::string text;
  for (const EpochEvent& epoch : history.epochs) {
    text += std::to_string(epoch.steps) + (epoch.complete ? " complete" : " cut off");
    for (const auto& [name, value] : epoch.training) text += " " + std::to_string(value);
    for (const auto& [name, value] : epoch.validation) text += " " + std::to_string(value);
    text += "\n";
  }
  const std::vector<std::byte> bytes = parameter_bytes(trainer.executor());
  return text + std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

TEST(StreamTraining, EqualsThatOnASource) {
  for (const int64_t samples : {kSamples, 2 * kBatchSize}) {
    for (const bool strict_shapes : {false, true}) {
      Trainer on_source = trainer_of({}, strict_shapes), on_stream = trainer_of({}, strict_shapes);
      Reader source(points(samples), {.batch = kBatchSize});
      Reader stream(streamed(points(samples)), {.batch = kBatchSize});
      Reader source_val(points(13, 2), {.batch = 4}),
          stream_val(streamed(points(13, 2)), {.batch = 4});
      std::vector<int64_t> steps, expected_steps;
      const auto record = [](std::vector<int64_t>& to) {
        return [&to](const StepEvent& step) {
          to.push_back(100 * step.epoch + 10 * step.step_in_epoch + step.samples);
        };
      };
      const History expected = on_source.fit(
          source, {.epochs = 3, .validation = &source_val, .on_step = record(expected_steps)});
      const History history =
          on_stream.fit(stream, {.epochs = 3, .validation = &stream_val, .on_step = record(steps)});
      EXPECT_EQ(result_of(on_stream, history), result_of(on_source, expected));
      EXPECT_EQ(steps, expected_steps);
      EXPECT_EQ(on_stream.evaluate(stream_val), on_source.evaluate(source_val));
      const Dataset p = on_stream.predict(stream_val), q = on_source.predict(source_val);
      ASSERT_EQ(p.samples(), 13);
      EXPECT_EQ(std::memcmp(p.find("p")->data(), q.find("p")->data(),
                            static_cast<size_t>(p.find("p")->bytes())),
                0);
    }
  }
}

TEST(StreamTraining, ResumesBitForBit) {
  for (const int64_t buffer : {0, 7}) {
    ReaderOptions options = {.batch = kBatchSize, .shuffle_buffer = buffer};
    if (buffer > 0) options.shuffle_seed = 3;
    Trainer whole = trainer_of();
    Reader data(streamed(points(kSamples)), options);
    const History history = whole.fit(data, {.epochs = 4});
    // In the middle of an epoch, at its end, and before its last batch.
    for (const int64_t steps : {4, 5, 6}) {
      const TempDir dir;
      const std::string run = dir.file("run");
      {
        Trainer first = trainer_of({.directory = run});
        Reader again(streamed(points(kSamples)), options);
        const History cut = first.fit(again, {.epochs = 4, .max_steps = steps});
        EXPECT_EQ(cut.epochs.back().complete, steps == 6);
        EXPECT_EQ(cut.reason, StopReason::max_steps);
      }
      Trainer second = trainer_of({.directory = run, .resume = true});
      const auto stream = std::make_shared<SourceStream>(points(kSamples));
      Reader resumed(stream, options);
      const History rest = second.fit(resumed, {.epochs = 4});
      EXPECT_EQ(parameter_bytes(second.executor()), parameter_bytes(whole.executor())) << steps;
      EXPECT_EQ(rest.epochs.back().training, history.epochs.back().training);
      EXPECT_EQ(stream->epochs,
                steps == 6 ? (std::vector<int64_t>{2, 3}) : (std::vector<int64_t>{1, 2, 3}));
    }
  }
}

TEST(StreamTraining, GoesOnInASecondCall) {
  for (const bool streams : {false, true}) {
    const auto reader = [&] {
      return streams ? Reader(streamed(points(kSamples)), {.batch = kBatchSize})
                     : Reader(points(kSamples), {.batch = kBatchSize});
    };
    Trainer whole = trainer_of(), parts = trainer_of();
    Reader data = reader(), again = reader();
    whole.fit(data, {.epochs = 3});
    for (const int64_t steps : {2, 3, 7}) {
      const History part = parts.fit(again, {.epochs = 3, .max_steps = steps});
      EXPECT_EQ(part.steps, steps);
      EXPECT_EQ(part.epochs.back().steps, steps) << "no epoch without a step";
    }
    const History last = parts.fit(again, {.epochs = 3});
    EXPECT_EQ(last.epochs.size(), 1u);
    EXPECT_EQ(parameter_bytes(parts.executor()), parameter_bytes(whole.executor()));
  }
}

TEST(StreamTraining, AnErrorEndsItAfterTheStepsBefore) {
  const auto stream = std::make_shared<SourceStream>(points(kSamples));
  stream->fails_at = 12;
  Reader data(stream, {.batch = kBatchSize});
  Trainer trainer = trainer_of();
  int64_t steps = 0;
  expect_user_error(
      [&] { trainer.fit(data, {.on_step = [&](const StepEvent& step) { steps = step.step; }}); },
      "sample 12 is broken");
  EXPECT_EQ(steps, 1);
}

TEST(StreamTraining, FindsTheLearningRate) {
  Program net("line");
  const Value x = net.data("x", {kBatch, 6}, f32), y = net.data("y", {kBatch, 1}, f32);
  const Value loss = mean(mse_loss(linear(x, {.units = 1}), y));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.1}, {.schedule = Manual()});
  const auto curve = [&](Reader data) {
    Executor exe(net, cpu(), {.seed = 1, .threads = 1});
    std::vector<double> losses;
    for (const LearningRatePoint& p : find_learning_rate(exe, net, data, {.steps = 20}).points) {
      losses.push_back(p.loss);
    }
    return losses;
  };
  const std::vector<double> losses = curve(Reader(streamed(points(kSamples)), {.batch = 10}));
  EXPECT_EQ(losses.size(), 20u);
  EXPECT_EQ(losses, curve(Reader(points(kSamples), {.batch = 10})));
}

/// The results of two ranks that train on readers which `reader` returns.
template <class F>
std::vector<std::string> results_of_ranks(F reader) {
  return Ranks(2,
               [&](const World& world) {
                 Trainer trainer(regression(), cpu(),
                                 {.seed = 5, .threads = 1, .distributed = {.world = world}});
                 Reader data = reader(world), validation = reader(world);
                 const History history =
                     trainer.fit(data, {.epochs = 2, .validation = &validation, .notice = {}});
                 return result_of(trainer, history);
               })
      .results();
}

TEST(StreamTraining, RanksShareTheBatches) {
  // The last batch of 3 or of 1: uneven, or empty on rank 1.
  for (const int64_t samples : {23, 21}) {
    const std::vector<std::string> streams = results_of_ranks([&](const World& world) {
      return Reader(streamed(points(samples)), {.batch = 5, .rank = world.rank, .world = 2});
    });
    const std::vector<std::string> sources = results_of_ranks([&](const World& world) {
      return Reader(points(samples), {.batch = 5, .rank = world.rank, .world = 2});
    });
    EXPECT_EQ(streams, sources);
    EXPECT_EQ(streams[0].find("Error"), std::string::npos) << streams[0];
  }
}

TEST(StreamTraining, RanksNoticeDifferentStreams) {
  // Another number of batches, and another size of the last one.
  for (const int64_t samples : {20, 22}) {
    const std::vector<std::string> results = results_of_ranks([&](const World& world) {
      return Reader(streamed(points(world.rank == 0 ? 23 : samples)),
                    {.batch = 5, .rank = world.rank, .world = 2});
    });
    for (const std::string& result : results) {
      EXPECT_NE(result.find("number of samples in the batch"), std::string::npos) << result;
    }
  }
}

}  // namespace
}  // namespace fluid::stream_training_test
