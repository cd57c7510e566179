#include "ops/table.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

Values expansion(ir::Op& op) {
  const auto* expand = std::get_if<Expand>(&*def_of(op).lower);
  return expand == nullptr ? Values() : expand->ops(ExpandCtx(op));
}

bool run(ir::Program& program, const Options&, const Target&) {
  bool changed = false;
  while (rewrite_ops(program.main(), expansion)) changed = true;
  return changed;
}

}  // namespace

Pass expand_pass() {
  return {.name = "expand",
          .doc = "Builds composite ops that no library kernel took from maps and reductions.",
          .needs = {"typed"},
          .gives = {"primitive"},
          .run = run};
}

}  // namespace fluid
