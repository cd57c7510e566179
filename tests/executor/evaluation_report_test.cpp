// The confusion matrix, the scores of classes and the worst samples of an evaluation. The scores
// are compared with the metric ops, which metrics_test.cpp compares with scikit-learn.

#include "executor/trainer/evaluation_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <set>

#include "frontend/fluid.h"
#include "tests/support/errors.h"

namespace fluid::evaluation_report_test {
namespace {

constexpr int64_t kClasses = 3;

/// Scores of the classes, a row a sample.
const std::vector<std::vector<float>> kScores = {{2, 0, 1}, {0, 3, 0}, {0, 1, 2}, {5, 1, 0},
                                                 {0, 2, 1}, {1, 0, 4}, {2, 1, 0}};
const std::vector<int64_t> kLabels = {0, 1, 1, 2, 1, 2, 0};

Dataset samples() {
  const auto n = std::ssize(kLabels);
  Tensor x(f32, {n, kClasses});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.as<float>()[static_cast<size_t>(i)] =
        kScores[static_cast<size_t>(i / kClasses)][static_cast<size_t>(i % kClasses)];
  }
  Dataset data{{{"x", x}, {"label", Tensor::of<int64_t>({n}, kLabels)}}};
  data.classes["label"] = {"cat", "dog", "cow"};
  return data;
}

/// Scores x, with a bias that stays 0.
Program classifier(const SoftmaxCrossEntropyAttrs& attrs = {}) {
  Program net("classifier");
  const Value x = net.data("x", {kBatch, kClasses}, f32), label = net.data("label", {kBatch}, i64);
  const Value scores = x + net.parameter("b", {kClasses}, Init::zeros());
  net.output("precision", precision(scores, label, {.average = "macro"}));
  net.output("recall", recall(scores, label, {.average = "macro"}));
  net.output("f1", f1_score(scores, label, {.average = "macro"}));
  const Value loss = softmax_cross_entropy(scores, label, attrs);
  minimize(attrs.reduction == "none" ? mean(loss) : loss, SGD{.lr = 0});
  return net;
}

NamedScalars evaluated(Program& net, EvaluationReport& report, const Dataset& data,
                       int64_t batch = 3) {
  Trainer trainer(net, cpu());
  Reader reader(data, {.batch = batch});
  return trainer.evaluate(reader, report.observer(reader));
}

double loss_of(size_t sample) {
  double sum = 0;
  for (const float score : kScores[sample]) sum += std::exp(static_cast<double>(score));
  return std::log(sum) - static_cast<double>(kScores[sample][static_cast<size_t>(kLabels[sample])]);
}

TEST(EvaluationReport, CountsLabelsAndPredictions) {
  Program net = classifier();
  EvaluationReport report(net);
  evaluated(net, report, samples());
  EXPECT_EQ(report.confusion(), (std::vector<int64_t>{2, 0, 0, 0, 2, 1, 1, 0, 1}));
  EXPECT_EQ(report.class_names(), (std::vector<std::string>{"cat", "dog", "cow"}));
}

TEST(EvaluationReport, HasTheScoresOfTheMetrics) {
  Program net = classifier();
  EvaluationReport report(net);
  const NamedScalars metrics = evaluated(net, report, samples());
  double precision = 0, recall = 0, f1 = 0;
  int64_t count = 0;
  for (const ClassScores& c : report.scores()) {
    precision += c.precision / kClasses;
    recall += c.recall / kClasses;
    f1 += c.f1 / kClasses;
    count += c.samples;
  }
  EXPECT_EQ(count, std::ssize(kLabels));
  ASSERT_GE(metrics.size(), 3u);
  EXPECT_NEAR(metrics[0].second, precision, 1e-12);
  EXPECT_NEAR(metrics[1].second, recall, 1e-12);
  EXPECT_NEAR(metrics[2].second, f1, 1e-12);
}

/// For each reduction of the loss, and whether batches have one sample or several.
TEST(EvaluationReport, KeepsTheSamplesWithTheLargestLosses) {
  for (const std::string reduction : {"none", "mean", "sum"}) {
    for (const int64_t batch : {1, 3, 7}) {
      SCOPED_TRACE(reduction + ", batches of " + std::to_string(batch));
      Program net = classifier({.reduction = reduction});
      EvaluationReport report(net, {.worst = 2});
      evaluated(net, report, samples(), batch);
      ASSERT_EQ(report.worst().size(), 2u);
      EXPECT_EQ(report.worst()[0].source_index, 3);
      EXPECT_NEAR(report.worst()[0].loss, loss_of(3), 1e-5);
      EXPECT_EQ(report.worst()[0].label, 2);
      EXPECT_EQ(report.worst()[0].prediction, 0);
      EXPECT_EQ(report.worst()[1].source_index, 2);
      EXPECT_NEAR(report.worst()[1].loss, loss_of(2), 1e-5);
    }
  }
}

TEST(EvaluationReport, NamesTheSamplesOfShuffledData) {
  Program net = classifier();
  EvaluationReport report(net, {.worst = 2});
  Trainer trainer(net, cpu());
  Reader reader(samples(), {.batch = 2, .shuffle_seed = 3});
  trainer.evaluate(reader, report.observer(reader));
  EXPECT_EQ(report.worst().at(0).source_index, 3);
  EXPECT_EQ(report.worst().at(1).source_index, 2);
}

/// Samples of which number 3, the worst one, cannot be read.
class Damaged : public SampleSource {
 public:
  int64_t samples() const override { return good_->samples(); }
  const std::vector<Column>& columns() const override { return good_->columns(); }
  void read(int64_t sample, const AugmentationSeed& seed,
            std::span<std::byte* const> to) const override {
    if (sample == 3) throw UserError("damaged");
    good_->read(sample, seed, to);
  }
  std::string name() const override { return "damaged"; }

 private:
  SampleSourcePtr good_ = make_source(evaluation_report_test::samples());
};

TEST(EvaluationReport, NamesTheSampleThatReplacesABadOne) {
  Program net = classifier();
  EvaluationReport report(net, {.worst = 7});
  Trainer trainer(net, cpu());
  Reader reader(std::make_shared<Damaged>(), {.batch = 2, .bad_records = BadRecords::skip});
  trainer.evaluate(reader, report.observer(reader));
  std::multiset<int64_t> rows;
  for (const SampleLoss& sample : report.worst()) {
    EXPECT_NEAR(sample.loss, loss_of(static_cast<size_t>(sample.source_index)), 1e-5)
        << sample.source_index;
    rows.insert(sample.source_index);
  }
  EXPECT_EQ(rows, (std::multiset<int64_t>{0, 1, 2, 4, 4, 5, 6}));
}

TEST(EvaluationReport, LeavesOutBadRecords) {
  Program net = classifier(), same = classifier();
  EvaluationReport report(net, {.worst = 7}), good(same);
  Trainer trainer(net, cpu());
  Reader reader(std::make_shared<Damaged>(), {.batch = 2, .bad_records = BadRecords::drop});
  EXPECT_EQ(trainer.evaluate(reader, report.observer(reader)),
            evaluated(same, good, samples().select(std::vector<int64_t>{0, 1, 2, 4, 5, 6})));
  EXPECT_EQ(report.confusion(), good.confusion());
  std::set<int64_t> rows;
  for (const SampleLoss& sample : report.worst()) {
    EXPECT_NEAR(sample.loss, loss_of(static_cast<size_t>(sample.source_index)), 1e-5)
        << sample.source_index;
    EXPECT_TRUE(rows.insert(sample.source_index).second);
  }
  EXPECT_EQ(rows, (std::set<int64_t>{0, 1, 2, 4, 5, 6}));
  expect_user_error([&] { trainer.fit(reader, {}); },
                    "BadRecords::drop changes the sizes of the batches: train with skip");
}

TEST(EvaluationReport, LeavesOutIgnoredLabels) {
  Program net = classifier({.ignore_index = {1}});
  EvaluationReport report(net);
  evaluated(net, report, samples());
  EXPECT_EQ(report.confusion(), (std::vector<int64_t>{2, 0, 0, 0, 0, 0, 1, 0, 1}));
  Dataset data = samples();
  data.columns[1].second.as<int64_t>()[0] = -100;
  Program other = classifier({.ignore_index = {-100}});
  EvaluationReport without_first(other);
  evaluated(other, without_first, data);
  EXPECT_EQ(without_first.confusion(), (std::vector<int64_t>{1, 0, 0, 0, 2, 1, 1, 0, 1}));
}

TEST(EvaluationReport, OfABinaryClassifier) {
  for (const bool has_logits : {true, false}) {
    Program net("binary");
    const Value x = net.data("x", {kBatch}, f32), y = net.data("y", {kBatch}, f32);
    const Value logits = x + net.parameter("b", {1}, Init::zeros());
    const Value loss = has_logits ? binary_cross_entropy_with_logits(logits, y)
                                  : binary_cross_entropy(sigmoid(logits), y);
    net.output("loss", loss);
    EvaluationReport report(net, {.worst = 1});
    evaluated(net, report,
              {{{"x", Tensor::of<float>({4}, std::vector<float>{-2, 0.5, 3, -0.1})},
                {"y", Tensor::of<float>({4}, std::vector<float>{0, 0, 1, 1})}}});
    EXPECT_EQ(report.confusion(), (std::vector<int64_t>{1, 1, 1, 1}));
    EXPECT_EQ(report.class_names(), (std::vector<std::string>{"0", "1"}));
    EXPECT_EQ(report.worst().at(0).source_index, 1);
    EXPECT_NEAR(report.worst().at(0).loss, std::log1p(std::exp(0.5)), 1e-6);
  }
}

TEST(EvaluationReport, OfARegressionHasNoClasses) {
  Program net("regression");
  const Value x = net.data("x", {kBatch, 2}, f32);
  const Value penalty = sum(square(net.parameter("w", {2}, Init::zeros())));
  net.output("loss", mean(square(x)) + penalty);
  EvaluationReport report(net, {.worst = 4});
  evaluated(net, report,
            {{{"x", Tensor::of<float>({3, 2}, std::vector<float>{1, 2, NAN, 0, 3, 1})}}}, 2);
  EXPECT_FALSE(report.has_classes());
  ASSERT_EQ(report.worst().size(), 3u);
  EXPECT_EQ(report.worst()[0].source_index, 1);
  EXPECT_TRUE(std::isnan(report.worst()[0].loss));
  EXPECT_FLOAT_EQ(static_cast<float>(report.worst()[1].loss), 5.0f);
  EXPECT_FLOAT_EQ(static_cast<float>(report.worst()[2].loss), 2.5f);
  EXPECT_FALSE(report.worst()[2].label.has_value());
}

TEST(EvaluationReport, SaysWhatItNeeds) {
  Program without_loss("without");
  without_loss.output("y", without_loss.data("x", {kBatch}, f32));
  expect_user_error([&] { EvaluationReport report(without_loss); },
                    "a report needs a program that minimizes one loss, or an output 'loss'");
  Program of_two("two");
  const Value x = of_two.data("x", {kBatch, 2}, f32), error = mean(square(linear(x, {.units = 1})));
  of_two.output("error", error);
  minimize(error, SGD{}, {.name = "a"});
  minimize(error, SGD{}, {.name = "b"});
  expect_user_error([&] { EvaluationReport report(of_two); }, "minimizes one loss");
  Program of_parameters("parameters");
  of_parameters.output("loss", sum(of_parameters.parameter("w", {2}, Init::zeros())));
  expect_user_error([&] { EvaluationReport report(of_parameters); },
                    "a report needs a loss that is a mean or a sum over the samples of a batch");
}

}  // namespace
}  // namespace fluid::evaluation_report_test
