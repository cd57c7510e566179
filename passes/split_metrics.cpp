#include "ops/operators.h"
#include "ops/table.h"
#include "passes/metrics.h"
#include "passes/pass.h"

namespace fluid {

bool is_metric(Value v) {
  return v.index() == 0 && std::holds_alternative<Metric>(*def_of(*v.op()).effects);
}

namespace {

bool run_split_metrics(ir::Program& program, const Options&, const Target&) {
  ir::Graph& graph = program.main();
  std::vector<ir::Output> outputs;
  for (const ir::Output& o : graph.outputs) {
    if (!is_metric(o.value)) {
      outputs.push_back(o);
      continue;
    }
    const Value sum = o.value, weight = o.value.op()->result(1);
    ir::ScopedRecording as(graph, {ir::Role::metric, sum.op()->loc, sum.op()->scope, ""});
    outputs.push_back({o.name, sum / weight});
    outputs.push_back({o.name + std::string(kMetricSum), sum});
    outputs.push_back({o.name + std::string(kMetricWeight), weight});
  }
  const bool changed = outputs.size() != graph.outputs.size();
  graph.outputs = std::move(outputs);
  return changed;
}

}  // namespace

Pass split_metrics_pass() {
  return {.name = "split_metrics",
          .doc = "Splits metrics into outputs for the sum, the weight and their quotient.",
          .needs = {"typed"},
          .gives = {},
          .run = run_split_metrics};
}

}  // namespace fluid
