#include "passes/outputs_add_up.h"

#include <algorithm>

namespace fluid {

bool is_additive(const ir::Output& output) {
  return is_float(output.value.dtype()) && !output.value.shape().has_batch();
}

std::vector<Summand> summands(const ir::Graph& graph) {
  std::vector<Summand> all;
  for (const ir::Output& o : graph.outputs) {
    if (is_additive(o)) all.push_back({o.name, o.value});
  }
  return all;
}

void replace_summands(ir::Graph& graph,
                      const std::function<Value(const std::string&, Value)>& total) {
  for (ir::Output& o : graph.outputs) {
    if (!is_additive(o)) continue;
    const ir::Op& op = *o.value.op();
    ir::ScopedRecording as(graph, {ir::Role::metric, op.loc, op.scope, ""});
    o.value = total(o.name, o.value);
  }
}

}  // namespace fluid
