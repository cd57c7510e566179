#include "ops/metric/confusion.h"

namespace fluid {

OpDef recall_op() {
  return confusion_metric_def("recall", "TP / (TP + FN)", [](const ClassCounts& c) {
    return ratio_or_zero(c.true_positives, c.true_positives + c.false_negatives);
  });
}

}  // namespace fluid
