#include "ops/metric/confusion.h"

namespace fluid {

OpDef f1_score_op() {
  return confusion_metric_def("f1_score", "2 TP / (2 TP + FP + FN)", [](const ClassCounts& c) {
    return ratio_or_zero(2 * c.true_positives,
                         2 * c.true_positives + c.false_positives + c.false_negatives);
  });
}

}  // namespace fluid
