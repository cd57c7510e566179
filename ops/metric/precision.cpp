#include "ops/metric/confusion.h"

namespace fluid {

OpDef precision_op() {
  return confusion_metric_def("precision", "TP / (TP + FP)", [](const ClassCounts& c) {
    return ratio_or_zero(c.true_positives, c.true_positives + c.false_positives);
  });
}

}  // namespace fluid
