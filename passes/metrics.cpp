#include "passes/metrics.h"

#include "ops/arguments.h"
#include "ops/table.h"

namespace fluid {

bool is_metric(Value v) { return std::holds_alternative<Metric>(*def_of(*v.op()).effects); }

double metric_value(const ir::Op& op, std::span<const double> statistics) {
  const OpDef& def = def_of(op);
  return std::get<Metric>(*def.effects).value(statistics, complete_attrs(def, op.attrs, op.loc));
}

}  // namespace fluid
