// Metrics over several batches, micro-batches and ranks against scikit-learn's over all samples,
// which tests/golden/metrics.py recorded.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "executor/trainer/evaluation_report.h"
#include "executor/trainer/trainer.h"
#include "frontend/fluid.h"
#include "tests/support/all_within.h"
#include "tests/support/golden.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

namespace fluid::metrics_test {
namespace {

constexpr int64_t kSamples = 57, kClasses = 4, kOutputs = 3;

/// The script's numbers.
Tensor column(std::vector<int64_t> shape, int64_t salt, double shift = 0) {
  Tensor t(f64, std::move(shape));
  for (int64_t i = 0; i < t.numel(); ++i) {
    const int64_t level = (i * 7919 + salt * 104729) % 1009 * 64 / 1009;
    t.as<double>()[static_cast<size_t>(i)] = static_cast<double>(level) / 64 - shift;
  }
  return t;
}

Tensor label_column(int64_t salt, double classes) {
  Tensor t = column({kSamples}, salt);
  for (double& x : t.as<double>()) x = std::floor(x * classes);
  return t.cast(i64);
}

/// Probabilities that are multiples of 1/64 and sum to 1.
Tensor probabilities() {
  const Tensor thirds = column({kSamples, kClasses - 1}, 7);
  Tensor all(f64, {kSamples, kClasses});
  for (int64_t i = 0; i < kSamples; ++i) {
    double rest = 1;
    for (int64_t c = 0; c + 1 < kClasses; ++c) {
      const double p = std::floor(thirds.at(i * (kClasses - 1) + c) * 21) / 64;
      all.as<double>()[static_cast<size_t>(i * kClasses + c)] = p;
      rest -= p;
    }
    all.as<double>()[static_cast<size_t>(i * kClasses + kClasses - 1)] = rest;
  }
  return all;
}

Dataset samples() {
  return {{{"scores", column({kSamples, kClasses}, 1, 0.5)},
           {"label", label_column(2, 3)},
           {"probabilities", probabilities()},
           {"class", label_column(8, kClasses)},
           {"score", column({kSamples}, 3, 0.5)},
           {"positive", label_column(4, 2)},
           {"prediction", column({kSamples, kOutputs}, 5)},
           {"target", column({kSamples, kOutputs}, 6)}}};
}

/// All metrics; trains a parameter on which none depends.
Program metrics_program() {
  Program net("metrics");
  const Value scores = net.data("scores", {kBatch, kClasses}, f64);
  const Value label = net.data("label", {kBatch}, i64);
  const Value score = net.data("score", {kBatch}, f64);
  const Value positive = net.data("positive", {kBatch}, i64);
  const Value prediction = net.data("prediction", {kBatch, kOutputs}, f64);
  const Value target = net.data("target", {kBatch, kOutputs}, f64);
  net.output("accuracy", accuracy(scores, label));
  for (const int64_t k : {1, 2, 3}) {
    net.output("top_" + std::to_string(k), top_k_accuracy(scores, label, {.k = k}));
  }
  net.output("mse", mean_squared_error(prediction, target));
  net.output("rmse", root_mean_squared_error(prediction, target));
  net.output("mae", mean_absolute_error(prediction, target));
  net.output("r2", r2_score(prediction, target));
  net.output("perplexity", perplexity(scores, label));
  net.output("roc_auc", roc_auc(score, positive));
  net.output("roc_auc_ovr", roc_auc(net.data("probabilities", {kBatch, kClasses}, f64),
                                    net.data("class", {kBatch}, i64), {.classes = kClasses}));
  for (const std::string average : {"micro", "macro", "weighted"}) {
    net.output("precision_" + average, precision(scores, label, {.average = average}));
    net.output("recall_" + average, recall(scores, label, {.average = average}));
    net.output("f1_" + average, f1_score(scores, label, {.average = average}));
  }
  const std::string binary = "binary";
  net.output("precision_binary",
             precision(score, positive, {.average = binary, .threshold = 0.125}));
  net.output("recall_binary", recall(score, positive, {.average = binary, .threshold = 0.125}));
  net.output("f1_binary", f1_score(score, positive, {.average = binary, .threshold = 0.125}));
  const Value w = net.parameter("w", {kOutputs}, Init::zeros());
  minimize(mean(mse_loss(cast(prediction, f32) * w, cast(target, f32))), SGD{.lr = 0.01});
  return net;
}

/// Lists the metrics that differ from scikit-learn's.
std::string differences(const NamedScalars& found) {
  const nlohmann::json expected = testing::golden_json("metrics.json").at("metrics");
  std::string text;
  if (found.size() != expected.size()) text = std::to_string(found.size()) + " metrics\n";
  for (const auto& [name, value] : found) {
    const double sklearn = expected.at(name);
    if (std::abs(value - sklearn) < 1e-9) continue;
    text += name + ": " + std::to_string(value) + ", not " + std::to_string(sklearn) + "\n";
  }
  return text;
}

TEST(Metrics, OverAnEpochAreScikitLearns) {
  Trainer trainer(metrics_program(), cpu(), {.threads = 1});
  Reader reader(samples(), {.batch = 10});
  EXPECT_EQ(differences(trainer.evaluate(reader)), "");
}

TEST(Metrics, OfAStepOfMicroBatchesAreScikitLearns) {
  Executor exe(metrics_program(), cpu(), {.batch = kSamples, .threads = 1, .micro_batches = 4});
  Reader reader(samples(), {.batch = kSamples});
  EXPECT_EQ(differences(scalar_outputs(exe.run(*reader.next()))), "");
}

TEST(Metrics, OfClassesInAReportAreScikitLearns) {
  Program net("classifier");
  const Value label = net.data("label", {kBatch}, i64);
  const Value bias = net.parameter("b", {kClasses}, Init::zeros(), {.dtype = f64});
  const Value scores = net.data("scores", {kBatch, kClasses}, f64) + bias;
  minimize(mean(softmax_cross_entropy(scores, label)), SGD{});
  EvaluationReport report(net);
  Trainer trainer(net, cpu(), {.threads = 1});
  Dataset data = samples();
  std::erase_if(data.columns, [](const auto& column) {
    return column.first != "scores" && column.first != "label";
  });
  Reader reader(std::move(data), {.batch = 10});
  trainer.evaluate(reader, report.observer(reader));
  const nlohmann::json golden = testing::golden_json("metrics.json");
  EXPECT_EQ(report.confusion(), golden.at("confusion").get<std::vector<int64_t>>());
  std::map<std::string, std::vector<double>> found;
  for (const ClassScores& c : report.scores()) {
    found["precision"].push_back(c.precision);
    found["recall"].push_back(c.recall);
    found["f1"].push_back(c.f1);
    found["samples"].push_back(static_cast<double>(c.samples));
  }
  for (const auto& [name, values] : found) {
    SCOPED_TRACE(name);
    const auto expected = golden.at("classes").at(name).get<std::vector<double>>();
    testing::expect_all_within(values, expected, 1e-9);
  }
}

TEST(Metrics, OverRanksAreScikitLearns) {
  const auto rank = [](const World& world) {
    Trainer trainer(metrics_program(), cpu(), {.threads = 1, .distributed = {.world = world}});
    Reader train(samples(), {.batch = 8, .rank = world.rank, .world = world.size});
    Reader test(samples(), {.batch = 8, .rank = world.rank, .world = world.size});
    const History history = trainer.fit(train, {.epochs = 1, .validation = &test});
    return differences(history.epochs[0].training) + differences(history.epochs[0].validation);
  };
  for (const std::string& text : testing::Ranks(3, rank).results()) EXPECT_EQ(text, "");
}

TEST(Metrics, OfAnEpochSurviveACheckpointInItsMiddle) {
  const TempDir folder;
  const auto train = [&](bool resume, int64_t max_steps) {
    Trainer trainer(metrics_program(), cpu(), {.threads = 1},
                    {.directory = folder.path(), .resume = resume});
    Reader reader(samples(), {.batch = 10});
    return trainer.fit(reader, {.epochs = 1, .max_steps = max_steps});
  };
  train(false, 3);
  EXPECT_EQ(differences(train(true, 0).epochs.back().training), "");
}

TEST(Metrics, WithoutPositivesHaveNoRocAuc) {
  Dataset data = samples();
  for (auto& [name, values] : data.columns) {
    if (name == "positive") values = Tensor(i64, {kSamples});
  }
  Trainer trainer(metrics_program(), cpu(), {.threads = 1});
  Reader reader(std::move(data), {.batch = 10});
  for (const auto& [name, value] : trainer.evaluate(reader)) {
    EXPECT_EQ(std::isnan(value), name == "roc_auc") << name;
  }
}

}  // namespace
}  // namespace fluid::metrics_test
