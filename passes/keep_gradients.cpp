#include "ops/random/initializer.h"
#include "ops/record.h"
#include "ops/source/kept_gradient.h"
#include "passes/collective_order.h"
#include "passes/pass.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

bool run_keep_gradients(ir::Program& program, const Options&, const Target&) {
  ir::Graph& graph = program.main();
  ir::Op* directive = find_directive(graph);
  if (directive == nullptr) return false;
  const Recipe recipe(*directive);
  bool changed = false;
  for (size_t i = 0; i < recipe.parameters().size(); ++i) {
    const std::string& name = recipe.parameters()[i];
    const ir::Op& param = *graph.find_indexed("param", name);
    if (!param.attrs.get_or(kKeepGradient, false)) continue;
    const ir::ScopedRecording as(graph, recipe.recording(name));
    Value gradient = recipe.gradient(i);
    if (recipe.is_sharded()) {  // each rank has 0 outside of its shard
      gradient = record_collective(graph, "all_reduce", {gradient}, param.loc)[0];
    }
    const std::string state = kept_gradient_name(name);
    record_source(graph, "state", state, gradient.type(), {{kScratchAttribute, true}}, param.loc);
    record_store(graph, state, gradient, param.loc);
    changed = true;
  }
  if (changed) move_op_last(graph, directive);
  return changed;
}

}  // namespace

Pass keep_gradients_pass() {
  return {.name = "keep_gradients",
          .doc = "Stores the gradients of parameters with the attribute keep_gradient in states.",
          .needs = {"gradients"},
          .provides = {},
          .run = run_keep_gradients};
}

}  // namespace fluid
