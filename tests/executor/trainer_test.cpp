// Trainer: the loop over epochs, against loops of Executor::run() written by hand.

#include "executor/trainer/trainer.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <random>

#include "executor/comm/process_group.h"
#include "frontend/fluid.h"
#include "tests/support/errors.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"
#include "tests/support/training.h"

namespace fluid::trainer_test {
namespace {

constexpr int64_t kSamples = 25, kBatchSize = 10;  // batches of 10, 10 and 5

Program classifier() {
  Program net("classifier");
  const Value x = net.data("x", {kBatch, 6}, f32), label = net.data("label", {kBatch}, i64);
  const Value hidden = dropout(linear(x, {.units = 16, .act = Act::relu}), {.p = 0.2});
  const Value logits = linear(hidden, {.units = 3});
  const Value loss = mean(softmax_cross_entropy(logits, label));
  net.output("loss", loss);
  net.output("accuracy", accuracy(logits, label));
  net.output("logits", logits);
  minimize(loss, Adam{.lr = 0.01});
  return net;
}

Dataset points(int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  Tensor x(f32, {n, 6}), label(i64, {n});
  for (float& value : x.as<float>()) value = static_cast<float>(random() % 200) / 100 - 1;
  for (int64_t i = 0; i < n; ++i) {
    const auto row = x.as<float>().subspan(static_cast<size_t>(6 * i), 3);
    label.as<int64_t>()[static_cast<size_t>(i)] = std::ranges::max_element(row) - row.begin();
  }
  return {.columns = {{"x", x}, {"label", label}}, .source = "points"};
}

Reader training_data() {
  return Reader(points(kSamples, 1), {.batch = kBatchSize, .shuffle_seed = 3});
}

Trainer trainer_of(const CheckpointingOptions& checkpoints = {}) {
  return Trainer(classifier(), cpu(), {.seed = 5, .threads = 1}, checkpoints);
}

FitOptions quietly(FitOptions options) {
  options.notice = {};
  return options;
}

/// The parameters after fit() of so many epochs in one call.
std::vector<std::byte> parameters_after(int64_t epochs) {
  Trainer trainer = trainer_of();
  Reader data = training_data();
  trainer.fit(data, {.epochs = epochs});
  return parameter_bytes(trainer.executor());
}

TEST(Trainer, TakesTheStepsOfALoopByHand) {
  Executor exe(classifier(), cpu(), {.seed = 5, .threads = 1});
  Reader data = training_data();
  exe.prepare({.train = data.batch_sizes()});
  double loss = 0, hits = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    loss = hits = 0;
    for (const Batch& batch : data) {
      const OutputViews outputs = exe.run(batch);
      loss += outputs["loss"].item() * static_cast<double>(batch.size);
      hits += outputs.find("accuracy").statistics.at(0);
    }
  }

  Trainer trainer = trainer_of();
  Reader again = training_data();
  std::vector<int64_t> steps;
  const History history =
      trainer.fit(again, {.epochs = 2, .on_step = [&](const StepEvent& step) {
                            steps.push_back(step.step);
                            EXPECT_EQ(step.epoch, (step.step + 2) / 3);
                            EXPECT_EQ(step.step_in_epoch, (step.step + 2) % 3 + 1);
                            EXPECT_EQ(step.samples, step.step % 3 == 0 ? 5 : 10);
                            EXPECT_EQ(step.learning_rate, 0.01);
                          }});
  EXPECT_EQ(parameter_bytes(trainer.executor()), parameter_bytes(exe));
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  ASSERT_EQ(history.epochs.size(), 2u);
  EXPECT_EQ(history.steps, 6);
  EXPECT_EQ(history.reason, StopReason::epochs);
  const NamedScalars expected = {{"loss", loss / kSamples}, {"accuracy", hits / kSamples}};
  const NamedScalars& last = history.epochs.back().training;
  ASSERT_EQ(last.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(last[i].first, expected[i].first);
    EXPECT_NEAR(last[i].second, expected[i].second, 1e-12);
  }
}

TEST(Trainer, GoesOnInASecondCallAndAfterACheckpoint) {
  const std::vector<std::byte> whole = parameters_after(4);
  {
    Trainer trainer = trainer_of();
    Reader data = training_data();
    trainer.fit(data, {.epochs = 1});
    EXPECT_EQ(trainer.fit(data, quietly({.epochs = 1})).steps, 3) << "all epochs were done";
    Reader another = training_data();
    trainer.fit(another, {.epochs = 4});
    EXPECT_EQ(parameter_bytes(trainer.executor()), whole);
  }
  {
    Trainer trainer = trainer_of();
    Reader data = training_data();
    EXPECT_EQ(trainer.fit(data, {.epochs = 4, .max_steps = 5}).reason, StopReason::max_steps);
    trainer.fit(data, {.epochs = 4});
    EXPECT_EQ(parameter_bytes(trainer.executor()), whole) << "from the middle of an epoch";
  }
  const TempDir dir;
  const std::string run = dir.file("run");
  {
    Trainer trainer = trainer_of({.directory = run});
    EXPECT_FALSE(trainer.resumes());
    Reader data = training_data();
    trainer.fit(data, {.epochs = 4, .max_steps = 5});
  }
  expect_user_error(
      [&] { trainer_of({.directory = run}); },
      "'" + run +
          "' holds checkpoints: set CheckpointingOptions::resume to continue from them, or use "
          "another directory for a new run");
  Trainer trainer = trainer_of({.directory = run, .resume = true});
  EXPECT_TRUE(trainer.resumes());
  EXPECT_NE(trainer.resumed_path().find("step-0000000005"), std::string::npos);
  Reader data = training_data();
  std::vector<std::string> notices;
  BeginEvent begin;
  trainer.fit(data, {.epochs = 4,
                     .on_begin = [&](const BeginEvent& event) { begin = event; },
                     .notice = [&](const std::string& text) { notices.push_back(text); }});
  EXPECT_EQ(begin.steps, 5);
  EXPECT_EQ(begin.epochs, 1);
  EXPECT_EQ(parameter_bytes(trainer.executor()), whole);
  ASSERT_FALSE(notices.empty());
  EXPECT_NE(notices.front().find("step 5 in epoch 2"), std::string::npos) << notices.front();
}

TEST(Trainer, ValidatesAndStopsWhenNothingGetsBetter) {
  const TempDir dir;
  Trainer trainer = trainer_of();
  Reader data = training_data(), held_out(points(13, 2), {.batch = 4});
  std::vector<bool> best;
  const History history = trainer.fit(
      data, quietly({.epochs = 500,
                     .validation = &held_out,
                     .best = "accuracy:max",
                     .patience = 3,
                     .save_best = dir.file("best.safetensors"),
                     .on_epoch = [&](const EpochEvent& epoch) { best.push_back(epoch.best); }}));
  EXPECT_EQ(history.reason, StopReason::patience);
  ASSERT_TRUE(history.best);
  const auto last = static_cast<int64_t>(history.epochs.size());
  EXPECT_EQ(history.best->epoch, last - 3);
  EXPECT_TRUE(best[static_cast<size_t>(history.best->epoch) - 1]);
  EXPECT_EQ(history.epochs[static_cast<size_t>(history.best->epoch) - 1].validation.at(1).second,
            history.best->value);
  Trainer saved = trainer_of();
  saved.load(dir.file("best.safetensors"));
  EXPECT_EQ(saved.evaluate(held_out).at(1),
            std::pair(std::string("accuracy"), history.best->value));
}

TEST(Trainer, StopsWhenACallbackAsks) {
  Trainer trainer = trainer_of();
  Reader data = training_data();
  History history = trainer.fit(data, quietly({.epochs = 9, .on_step = [&](const StepEvent& step) {
                                                 if (step.step == 4) trainer.stop();
                                               }}));
  EXPECT_EQ(history.reason, StopReason::stopped);
  EXPECT_EQ(history.steps, 4);
  EXPECT_TRUE(history.epochs.front().complete);
  EXPECT_FALSE(history.epochs.back().complete);
  history = trainer.fit(data, quietly({.epochs = 9, .on_epoch = [&](const EpochEvent& epoch) {
                                         if (epoch.epoch == 3) trainer.stop();
                                       }}));
  EXPECT_EQ(history.steps, 9);
  EXPECT_TRUE(history.epochs.back().complete);
  trainer.fit(data, {.epochs = 4});
  EXPECT_EQ(parameter_bytes(trainer.executor()), parameters_after(4));
}

TEST(Trainer, StopsAfterTheStepOfASignalAndGivesHandlersBack) {
  struct sigaction before = {}, after = {};
  sigaction(SIGTERM, nullptr, &before);
  Trainer trainer = trainer_of();
  Reader data = training_data();
  const History history = trainer.fit(
      data, quietly({.epochs = 9, .handle_signals = true, .on_step = [](const StepEvent& step) {
                       if (step.step == 2) std::raise(SIGTERM);
                     }}));
  EXPECT_EQ(history.steps, 2);
  EXPECT_EQ(history.reason, StopReason::stopped);
  sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
}

/// SIGUSR1 during validation or a callback must not be lost.
TEST(Trainer, SavesForASignalBetweenEpochs) {
  const TempDir dir;
  const std::string file = dir.file("w.safetensors");
  Trainer trainer = trainer_of({.directory = dir.file("run"), .every_steps = 1000});
  Reader data = training_data();
  bool saved_before_step = false;
  trainer.fit(data, quietly({.epochs = 2,
                             .save = file,
                             .handle_signals = true,
                             .on_batch =
                                 [&](int64_t step, const Batch&) {
                                   if (step == *data.batches() + 1)
                                     saved_before_step = std::filesystem::exists(file);
                                 },
                             .on_epoch =
                                 [](const EpochEvent& epoch) {
                                   if (epoch.epoch == 1) std::raise(SIGUSR1);
                                 }}));
  EXPECT_TRUE(saved_before_step);
  EXPECT_TRUE(std::filesystem::exists(dir.file("run/step-0000000003")));
}

TEST(Trainer, PredictsTheRowsInTheOrderOfTheData) {
  Trainer trainer = trainer_of();
  Reader data = training_data();
  trainer.fit(data, {.epochs = 1});
  const Dataset samples = points(23, 9);
  Reader unlabelled({{{"x", *samples.find("x")}}}, {.batch = 10});
  const Dataset predicted = trainer.predict(unlabelled);
  ASSERT_EQ(predicted.columns.size(), 1u) << "loss and accuracy need labels";
  const Tensor& logits = *predicted.find("logits");
  ASSERT_EQ(logits.shape(), (std::vector<int64_t>{23, 3}));
  const OutputViews whole = trainer.executor().predict({23, {{"x", *samples.find("x")}}});
  EXPECT_EQ(std::memcmp(logits.data(), whole["logits"].data(), 23 * 3 * 4), 0);
  Reader labels({{{"label", *samples.find("label")}}}, {.batch = 10});
  expect_user_error([&] { trainer.predict(labels); },
                    "predict() needs an output with one row a sample that the data's columns give");
}

/// Two ranks see the samples of every batch once, and know the same metrics.
TEST(Trainer, TrainsOnRanks) {
  const auto train_on = [](const World& world) {
    Program net("line");
    const Value x = net.data("x", {kBatch, 6}, f32);
    const Value logits = linear(x, {.units = 3}), label = net.data("label", {kBatch}, i64);
    const Value loss = mean(softmax_cross_entropy(logits, label));
    net.output("loss", loss);
    net.output("accuracy", accuracy(logits, label));
    minimize(loss, SGD{.lr = 0.1});
    const ReaderOptions share{.batch = kBatchSize / world.size,
                              .shuffle_seed = 3,
                              .rank = world.rank,
                              .world = world.size};
    Reader data(points(kSamples, 1), share), held_out(points(13, 2), share);
    Trainer trainer(net, cpu(),
                    {.threads = 1, .precision = {.dtype = f64}, .distributed = {.world = world}});
    const History history = trainer.fit(
        data, quietly({.epochs = 3, .validation = &held_out, .on_step = [&](const StepEvent& step) {
                         if (step.step == 7 && world.rank == world.size - 1) trainer.stop();
                       }}));
    std::string text = std::to_string(history.steps);
    for (const EpochEvent& epoch : history.epochs) {
      for (const NamedScalars& values : {epoch.training, epoch.validation}) {
        for (const auto& [name, value] : values) {
          char line[64];
          std::snprintf(line, sizeof line, " %s %.9f", name.c_str(), value);
          text += line;
        }
      }
    }
    return text;
  };
  const std::vector<std::string> results = testing::Ranks(2, train_on).results();  // forks first
  const std::string alone = train_on({});
  EXPECT_EQ(alone.substr(0, 2), "7 ");
  for (const std::string& result : results) EXPECT_EQ(result, alone);
}

TEST(Trainer, RejectsOptionsThatDoNotFit) {
  Trainer trainer = trainer_of();
  Reader data = training_data(), held_out(points(13, 2), {.batch = 4});
  const auto expect_error = [&](const FitOptions& options, const std::string& message) {
    expect_user_error([&] { trainer.fit(data, options); }, message);
    expect_user_error([&] { check_fit_options(classifier(), options); }, message);
  };
  expect_error({.best = "loss"}, "best needs validation data");
  expect_error({.patience = 2}, "patience needs validation data");
  expect_error({.save_best = "w"}, "save_best needs validation data");
  expect_error({.validation = &held_out, .best = "logits"},
               "best: no scalar output has the name 'logits'");
  expect_error({.validation = &held_out, .best = "loss:up"},
               "best: write loss:min or loss:max, not loss:up");
  expect_user_error([] { trainer_of({.resume = true}); }, "checkpoints: resume needs a directory");
  expect_user_error([] { trainer_of({.directory = "run", .keep = 0}); },
                    "checkpoints: every_steps and every_minutes are positive, keep is at least 1");
  Program forward("forward");
  forward.output("y", forward.data("x", {kBatch, 6}, f32) * 2.0F);
  expect_user_error([&] { check_fit_options(forward, {}); },
                    "program 'forward' cannot be trained: it minimizes nothing");
}

}  // namespace
}  // namespace fluid::trainer_test
