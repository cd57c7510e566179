#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/trainer/batch_observer.h"
#include "frontend/program.h"
#include "frontend/readers/reader.h"

namespace fluid {

/// A sample and its loss.
struct SampleLoss {
  int64_t source_index = 0;  ///< SampleData::source_index()
  std::string location;      ///< SampleData::location(), such as "'cats/1.jpg'"
  double loss = 0;
  /// Classes of the label and of the prediction; absent if a sample has several labels.
  std::optional<int64_t> label = {}, prediction = {};
};

/// The scores of one class, as in sklearn.metrics.classification_report.
struct ClassScores {
  int64_t samples = 0;  ///< number of samples whose label is this class
  double precision = 0, recall = 0, f1 = 0;
};

/// Options of EvaluationReport.
struct EvaluationReportOptions {
  int64_t worst = 10;          ///< number of samples with the largest losses to keep
  int64_t max_classes = 1000;  ///< makes no confusion matrix for more classes
};

/// Collects, during an evaluation, the samples with the largest losses and, for a classifier, the
/// confusion matrix.
///
///   fl::EvaluationReport report(net, {.worst = 10});  // before the Trainer is made
///   fl::Trainer trainer(net);
///   trainer.evaluate(test, report.observer(test));
///
/// The loss of a sample is its term in the first mean or sum over samples on which the minimized
/// loss depends. If the program does not have exactly one recipe, the output `loss` replaces the
/// minimized loss. A classifier is a program whose loss is softmax_cross_entropy, nll_loss,
/// binary_cross_entropy or binary_cross_entropy_with_logits. A prediction is the class with the
/// largest score; with binary losses it is 1 if the probability is above 0.5. With soft labels, the
/// label is the class with the largest probability.
class EvaluationReport {
 public:
  /// Adds per-sample outputs to `program`, named "report.loss", "report.label" and
  /// "report.prediction". Throws UserError if the loss is not a mean or sum over samples.
  explicit EvaluationReport(Program& program, const EvaluationReportOptions& options = {});

  /// Adds the samples of the batch that `data` returned last.
  void add(const Reader& data, const Batch& batch, const OutputViews& outputs);
  /// Returns a callback for Trainer::evaluate(). This object and `data` must outlive it. On several
  /// ranks, the report covers the samples of this rank.
  BatchObserver observer(const Reader& data);

  /// The samples with the largest losses, largest first. Equal losses are in the order of the
  /// samples; NaN is the largest loss.
  const std::vector<SampleLoss>& worst() const { return worst_; }
  bool has_classes() const { return classes_ > 0; }
  /// Confusion matrix [C, C] of counts, row-major: rows are labels, columns are predictions. Empty
  /// if has_classes() is false. Ignored labels are not counted.
  const std::vector<int64_t>& confusion() const { return confusion_; }
  int64_t classes() const { return classes_; }
  /// Names of the classes; "0", "1", ... if the data has none.
  std::vector<std::string> class_names() const;
  std::vector<ClassScores> scores() const;
  /// Whether `output` is one of the recorded outputs.
  static bool is_report_output(const std::string& output);

 private:
  void add_classes(const OutputViews& outputs);

  EvaluationReportOptions options_;
  int64_t classes_ = 0;
  std::string label_column_;  ///< name of the label feed; see ClassValues::label_feed
  std::vector<std::string> class_names_;
  std::vector<int64_t> confusion_;
  std::vector<SampleLoss> worst_;
  std::optional<int64_t> ignored_class_;
};

}  // namespace fluid
