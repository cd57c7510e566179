#pragma once

#include "ops/metric/statistics.h"

namespace fluid {

/// Prediction counts of a class c, or their sums over classes.
struct ClassCounts {
  double true_positives = 0;   ///< samples of c that are predicted as c
  double false_positives = 0;  ///< samples of other classes that are predicted as c
  double false_negatives = 0;  ///< samples of c that are predicted as another class
};

/// Definition of a metric whose statistics are the confusion matrix [C, C] of the labels (rows) and
/// the predicted classes (columns). Attribute `average` combines the scores of the classes as
/// sklearn.metrics.precision_recall_fscore_support does. `score`: the score of one class.
OpDef confusion_metric_def(std::string name, const std::string& formula,
                           std::function<double(const ClassCounts&)> score);

/// Returns a / b, or 0 if b is 0.
double ratio_or_zero(double a, double b);

}  // namespace fluid
