#include "ops/arguments.h"
#include "ops/record.h"
#include "ops/scan.h"
#include "ops/table.h"
#include "passes/pass.h"

namespace fluid {
namespace {

bool infer_graph_types(ir::Graph& graph) {
  bool changed = false;
  for (const auto& op : graph.ops) {
    fill_default_attrs(*op);
    if (is_scan(*op)) {
      changed |= set_argument_types(*op);
      changed |= infer_graph_types(*scan_parts(*op).body);
    }
    std::vector<Type> types = infer_types(*op);
    check(types.size() == op->results.size(),
          [&] { return op->name + ": another number of results"; });
    for (size_t i = 0; i < types.size(); ++i) types[i].layout = op->results[i].type.layout;
    if (types == result_types(*op)) continue;
    for (size_t i = 0; i < types.size(); ++i) op->results[i].type = types[i];
    changed = true;
  }
  return changed;
}

bool run_infer_types(ir::Program& program, const Options&, const Target&) {
  return infer_graph_types(program.main());
}

}  // namespace

Pass infer_types_pass() {
  return {.name = "infer_types",
          .doc = "Infers dtype and shape of every result from the types of the sources.",
          .needs = {},
          .provides = {"typed"},
          .run = run_infer_types};
}

}  // namespace fluid
