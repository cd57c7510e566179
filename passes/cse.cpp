#include "ops/op_kinds.h"
#include "ops/table.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// Whether `op` may be merged with an op of equal name, operands and attributes: `op` must be
/// deterministic and have no side effects.
bool is_mergeable(const ir::Op& op) {
  const OpDef& def = def_of(op);
  return std::holds_alternative<Pure>(*def.effects) &&
         !std::holds_alternative<Source>(*def.lower) &&
         !std::holds_alternative<Store>(*def.lower) &&
         !std::holds_alternative<Directive>(*def.lower) &&
         !std::holds_alternative<FusedOp>(*def.lower);
}

bool same_computation(const ir::Op& a, const ir::Op& b) {
  auto type_of = &ir::Result::type;
  return a.name == b.name && a.symbol == b.symbol && a.operands == b.operands &&
         a.attrs == b.attrs && std::ranges::equal(a.results, b.results, {}, type_of, type_of);
}

Values results_of(ir::Op& op) {
  Values values;
  for (size_t i = 0; i < op.results.size(); ++i) values.push_back(op.result(static_cast<int>(i)));
  return values;
}

bool run_cse(ir::Program& program, const Options&, const Target&) {
  std::map<std::pair<std::string, Values>, std::vector<ir::Op*>> seen;
  return rewrite_ops(program.main(), [&](ir::Op& op) {
    if (!is_mergeable(op)) return Values();
    std::vector<ir::Op*>& candidates = seen[{op.name, op.operands}];
    for (ir::Op* earlier : candidates) {
      if (!same_computation(*earlier, op)) continue;
      if (earlier->param.empty()) earlier->param = op.param;
      return results_of(*earlier);
    }
    candidates.push_back(&op);
    return Values();
  });
}

}  // namespace

Pass cse_pass() {
  return {.name = "cse",
          .doc = "Merges equal ops (common subexpression elimination). Random ops are never equal.",
          .needs = {"typed"},
          .provides = {},
          .run = run_cse};
}

}  // namespace fluid
