#include "ops/group.h"
#include "ops/table.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// Sets attribute `part_of` of the ops that expand `whole`: the ops of `graph` from position
/// `first` on. Error messages then name the composite op that the user recorded. Skips ops that are
/// neither composite nor able to reject data.
void set_part_of(const ir::Op& whole, ir::Graph& graph, size_t first) {
  for (size_t i = first; i < graph.ops.size(); ++i) {
    ir::Op& part = *graph.ops[i];
    const bool has_parts = std::holds_alternative<Expand>(*def_of(part).lower);
    if (!has_parts && checked_operands(part).empty()) continue;
    part.attrs.set("part_of", whole.attrs.get_or("part_of", whole.name));
  }
}

Values expansion(ir::Op& op) {
  const auto* expand = std::get_if<Expand>(&*def_of(op).lower);
  if (expand == nullptr) return {};
  const size_t first = op.graph()->ops.size();
  Values values = expand->ops(ExpandCtx(op));
  set_part_of(op, *op.graph(), first);
  return values;
}

bool run_expand(ir::Program& program, const Options&, const Target&) {
  bool changed = false;
  while (rewrite_ops(program.main(), expansion)) changed = true;
  return changed;
}

}  // namespace

Pass expand_pass() {
  return {.name = "expand",
          .doc = "Expands composite ops into maps and reductions.",
          .needs = {"typed"},
          .provides = {"primitive"},
          .run = run_expand};
}

}  // namespace fluid
