#include "executor/trainer/history_csv.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "frontend/files/csv.h"
#include "frontend/files/gz.h"
#include "frontend/fluid.h"
#include "ir/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::history_csv_test {
namespace {

using Table = std::vector<std::vector<std::string>>;

Program regression() {
  Program net("regression");
  const Value x = net.data("x", {kBatch, 1}, f32), y = net.data("y", {kBatch, 1}, f32);
  const Value loss = mean(square(linear(x, {.units = 1}) - y));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.1});
  return net;
}

Reader samples() {
  return Reader(Dataset{{{"x", Tensor::of<float>({3, 1}, std::vector<float>{1, 2, 3})},
                         {"y", Tensor::of<float>({3, 1}, std::vector<float>{3, 5, 7})}}},
                {.batch = 2});
}

Table table_in(const std::string& path) {
  const std::string text = read_gz_or_plain(path);
  CsvParser parser(text, path);
  Table table;
  while (parser.next()) table.emplace_back(parser.fields().begin(), parser.fields().end());
  return table;
}

class HistoryCsv : public ::testing::Test {
 protected:
  History train(int64_t epochs, bool validates, int64_t max_steps = 0, bool resume = false) {
    Trainer trainer(regression(), cpu(), {}, {.directory = dir_.file("run"), .resume = resume});
    Reader data = samples(), validation = samples();
    FitOptions options{
        .epochs = epochs, .max_steps = max_steps, .validation = validates ? &validation : nullptr};
    options.notice = nullptr;
    fluid::HistoryCsv csv(path_);
    csv.attach(options, trainer.executor());
    return trainer.fit(data, options);
  }

  TempDir dir_;
  const std::string path_ = dir_.file("history.csv");
};

TEST_F(HistoryCsv, HasTheNumbersOfTheHistory) {
  const History history = train(2, true);
  const Table table = table_in(path_);
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(table[0], (std::vector<std::string>{"epoch", "steps", "complete", "best", "ms_per_step",
                                                "seconds", "lr", "loss", "val_loss"}));
  for (size_t i = 0; i < 2; ++i) {
    const EpochEvent& epoch = history.epochs[i];
    EXPECT_EQ(table[i + 1][0], std::to_string(i + 1));
    EXPECT_EQ(table[i + 1][1], std::to_string(2 * (i + 1)));
    EXPECT_EQ(table[i + 1][2], "1");
    EXPECT_EQ(table[i + 1][6], "0.1");
    EXPECT_NEAR(std::stod(table[i + 1][7]), epoch.training[0].second, 1e-6);
    EXPECT_NEAR(std::stod(table[i + 1][8]), epoch.validation[0].second, 1e-6);
  }
  EXPECT_EQ(history.samples, 6);
  EXPECT_GT(history.training_seconds, 0);
  EXPECT_GE(history.seconds, history.training_seconds);
}

/// The second run stops in epoch 2; the third one resumes it, with validation.
TEST_F(HistoryCsv, GoesOnAfterAResume) {
  train(1, false);
  train(2, false, 3, true);
  EXPECT_EQ(table_in(path_).at(2).at(2), "0");
  train(3, true, 0, true);
  const Table table = table_in(path_);
  ASSERT_EQ(table.size(), 4u);
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(table[i][0], std::to_string(i));
    EXPECT_EQ(table[i][2], "1");
    EXPECT_EQ(table[i][8].empty(), i == 1) << "val_loss";
  }
}

/// The second run has no step left of epoch 1.
TEST_F(HistoryCsv, KeepsTheLearningRateOfAStoppedEpoch) {
  Program net = regression();
  for (const bool resume : {false, true}) {
    Trainer trainer(net, cpu(), {}, {.directory = dir_.file("run"), .resume = resume});
    Reader data = samples();
    FitOptions options{.epochs = 1};
    options.notice = nullptr;
    if (!resume) {
      options.on_step = [&](const StepEvent& step) {
        if (step.step == 2) trainer.stop();
      };
    }
    fluid::HistoryCsv csv(path_);
    csv.attach(options, trainer.executor());
    trainer.fit(data, options);
    const Table table = table_in(path_);
    ASSERT_EQ(table.size(), 2u);
    EXPECT_EQ(table[1][2], resume ? "1" : "0") << "complete";
    EXPECT_EQ(table[0][6], "lr");
    EXPECT_EQ(table[1][6], "0.1");
  }
}

TEST_F(HistoryCsv, KeepsOutputsThatAreCalledAsItsColumns) {
  Program net = regression();
  net.output("steps", net.ir().main().outputs.at(0).value + 1000);
  Trainer trainer(net, cpu());
  Reader data = samples();
  FitOptions options;
  fluid::HistoryCsv csv(path_);
  csv.attach(options, trainer.executor());
  trainer.fit(data, options);
  const Table table = table_in(path_);
  EXPECT_EQ(table.at(1).at(1), "2");
  ASSERT_EQ(table.at(0).at(8), "train_steps");
  EXPECT_GT(std::stod(table.at(1).at(8)), 1000);
}

/// Each epoch has two steps. The rate of recipe "second" is that of its only step.
TEST_F(HistoryCsv, HasTheLearningRatesOfEachRecipe) {
  Program net("two");
  const Value x = net.data("x", {kBatch, 1}, f32), y = net.data("y", {kBatch, 1}, f32);
  const Value error = linear(x, {.units = 1}) - y;
  const Value squares = mean(square(error));
  net.output("squares", squares);
  minimize(squares, SGD{.lr = 0.1},
           {.name = "first", .schedule = StepDecay{.every = 1, .factor = 0.5}});
  minimize(mean(abs(error)), SGD{.lr = 0.3}, {.name = "second"});
  Trainer trainer(net, cpu());
  Reader data = samples();
  FitOptions options{.recipes = {{"first", 3}, {"second", 1}}, .epochs = 2};
  fluid::HistoryCsv csv(path_);
  csv.attach(options, trainer.executor());
  trainer.fit(data, options);
  const Table table = table_in(path_);
  EXPECT_EQ(table.at(0).at(6), "lr_first");
  EXPECT_EQ(table.at(0).back(), "lr_second");
  EXPECT_EQ(table.at(1).at(6), "0.05") << "of its second update";
  EXPECT_EQ(table.at(1).back(), "") << "it has no step in the first epoch";
  EXPECT_EQ(table.at(2).at(6), "0.025");
  EXPECT_EQ(table.at(2).back(), "0.3");
}

TEST_F(HistoryCsv, ANewRunReplacesTheFile) {
  write_file_atomically(path_, "what was here before\n");
  train(1, false);
  EXPECT_EQ(table_in(path_).size(), 2u);
}

TEST_F(HistoryCsv, DoesNotReplaceAnotherFileOfAResumedRun) {
  train(1, false);
  write_file_atomically(path_, "name,age\nx,1\n");
  expect_user_error([&] { train(2, false, 0, true); },
                    "'" + path_ + "' is not a history of epochs: its first column is not 'epoch'");
  EXPECT_EQ(table_in(path_).at(0).at(0), "name");
}

}  // namespace
}  // namespace fluid::history_csv_test
