#include "passes/metrics.h"

#include <set>
#include <string>

#include "ops/arguments.h"
#include "ops/table.h"

namespace fluid {

bool is_metric(Value v) { return std::holds_alternative<Metric>(*def_of(*v.op()).effects); }

bool is_larger_better(Value v) {
  static const std::set<std::string> kMetrics = {
      "accuracy", "f1_score", "precision", "r2_score", "recall", "roc_auc", "top_k_accuracy"};
  return kMetrics.contains(v.op()->name);
}

double metric_value(const ir::Op& op, std::span<const double> statistics) {
  const OpDef& def = def_of(op);
  return std::get<Metric>(*def.effects).value(statistics, complete_attrs(def, op.attrs, op.loc));
}

}  // namespace fluid
