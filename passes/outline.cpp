#include "passes/compose.h"
#include "passes/groups.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// Whether the group is a single op that stays in the main graph. If neither stays_in_main_graph()
/// nor is_generated() holds, the group has no outputs, and its ops are dead.
bool stays_in_main_graph(const FusionGroup& group) {
  return !group.ops.empty() &&
         (!group.fusible || (group.ops.size() == 1 && is_alias(*group.ops.front())));
}

bool run_outline(ir::Program& program, const Options&, const Target&) {
  ir::Graph& main = program.main();
  const std::vector<FusionGroup> groups = extract_groups(main);
  const Uses uses = main.uses();
  std::vector<const ir::Op*> order;
  for (const FusionGroup& group : groups) {
    if (is_generated(group)) {
      ir::Op* fused = append_fused(program, group.ops, group.outputs, group.ops.back()->param);
      for (size_t i = 0; i < group.outputs.size(); ++i) {
        replace_all_uses(main, uses, group.outputs[i], fused->result(static_cast<int>(i)));
      }
      order.push_back(fused);
    } else if (stays_in_main_graph(group)) {
      order.push_back(group.ops.front());
    }
  }
  std::map<const ir::Op*, std::unique_ptr<ir::Op>> ops;
  for (auto& op : main.ops) {
    const ir::Op* key = op.get();
    ops[key] = std::move(op);
  }
  main.ops.clear();
  for (const ir::Op* op : order) main.ops.push_back(std::move(ops.at(op)));
  return true;
}

}  // namespace

Pass outline_pass() {
  return {.name = "outline",
          .doc = "Moves each group into the body graph of a `fused` op.",
          .needs = {"grouped"},
          .provides = {"fused"},
          .run = run_outline};
}

}  // namespace fluid
