#include "passes/outputs_add_up.h"

#include "ops/functions.h"
#include "passes/metrics.h"

namespace fluid {

bool is_additive(const ir::Output& output) {
  const auto is_batched = [](const Dim& d) { return d.batch; };
  return is_metric(output.value) ||
         (is_float(output.value.dtype()) && std::ranges::none_of(output.value.shape(), is_batched));
}

std::vector<Summand> summands(const ir::Graph& graph) {
  std::vector<Summand> all;
  for (const ir::Output& o : graph.outputs) {
    if (!is_additive(o)) continue;
    const bool metric = is_metric(o.value);
    all.push_back({metric ? o.name + std::string(kMetricSum) : o.name, o.value});
    if (metric) all.push_back({o.name + std::string(kMetricWeight), o.value.op()->result(1)});
  }
  return all;
}

void replace_summands(ir::Graph& graph,
                      const std::function<Value(const std::string&, Value)>& total) {
  for (ir::Output& o : graph.outputs) {
    if (!is_additive(o)) continue;
    ir::Op& op = *o.value.op();
    ir::ScopedRecording as(graph, {ir::Role::metric, op.loc, op.scope, ""});
    if (is_metric(o.value)) {
      const Value sum = total(o.name + std::string(kMetricSum), o.value);
      o.value = metric(sum, total(o.name + std::string(kMetricWeight), op.result(1)));
    } else {
      o.value = total(o.name, o.value);
    }
  }
}

}  // namespace fluid
