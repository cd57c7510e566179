#include <algorithm>

#include "ops/source/training_settings.h"
#include "ops/table.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

bool is_frozen_state(const ir::Op& op) { return op.attrs.get_or(kFrozenAttribute, false); }

bool run_freeze_states(ir::Program& program, const Options&, const Target&) {
  ir::Graph& graph = program.main();
  std::set<std::string_view> frozen;
  for (const auto& op : graph.ops) {
    if (is_frozen_state(*op)) frozen.insert(op->symbol);
  }
  if (frozen.empty()) return false;
  graph.erase_if([&](const ir::Op& op) { return is_store(op) && frozen.contains(op.symbol); });
  rewrite_ops(graph, [](ir::Op& op) {
    const OpDef& def = def_of(op);
    const bool reads_frozen =
        std::ranges::any_of(op.operands, [](const Value& v) { return is_frozen_state(*v.op()); });
    return def.inference && reads_frozen ? def.inference(ExpandCtx(op)) : Values();
  });
  return true;
}

}  // namespace

Pass freeze_states_pass() {
  return {.name = "freeze_states",
          .doc =
              "Removes the stores to frozen states, and replaces ops that read them by their "
              "inference forms.",
          .needs = {"typed"},
          .provides = {},
          .run = run_freeze_states};
}

}  // namespace fluid
