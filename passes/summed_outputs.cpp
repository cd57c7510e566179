#include "passes/summed_outputs.h"

#include <algorithm>

namespace fluid {

bool is_additive(const ir::Output& output) {
  return is_float(output.value.dtype()) && !output.value.shape().has_batch();
}

std::vector<SummedOutput> summed_outputs(const ir::Graph& graph) {
  std::vector<SummedOutput> all;
  for (const ir::Output& o : graph.outputs) {
    if (is_additive(o)) all.push_back({o.name, o.value});
  }
  return all;
}

void replace_summed_outputs(ir::Graph& graph,
                            const std::function<Value(const std::string&, Value)>& total) {
  for (ir::Output& o : graph.outputs) {
    if (!is_additive(o)) continue;
    const ir::Op& op = *o.value.op();
    ir::ScopedRecording as(graph, {ir::Role::metric, op.loc, op.scope, ""});
    o.value = total(o.name, o.value);
  }
}

}  // namespace fluid
