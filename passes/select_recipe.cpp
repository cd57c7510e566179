#include "passes/select_recipe.h"

#include <algorithm>

#include "ops/optim/recipes.h"
#include "ops/source_kind.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

using Ops = std::set<const ir::Op*>;

bool is_source(const ir::Op& op) { return source_kind(op) != SourceKind::none; }

/// Whether all feeds and variables on which `v` depends are in `needed`.
bool adds_no_source(Value v, const Ops& needed) {
  return std::ranges::all_of(
      ancestors({v}), [&](const ir::Op* op) { return !is_source(*op) || needed.contains(op); });
}

bool is_loss_of_other(Value v, const ir::Graph& graph, const ir::Op& train) {
  return v != unpenalized_loss(train) &&
         std::ranges::any_of(recipes_of(graph),
                             [&](const ir::Op* other) { return unpenalized_loss(*other) == v; });
}

/// Whether `store` writes a state of a layer that the recipe uses. This holds if the op that
/// computes the stored value is in `needed`, or reads only constants, variables and results of ops
/// in `needed`.
bool writes_state_of(const ir::Op& store, const Ops& needed) {
  const ir::Op* update = store.operands.at(0).op();
  return needed.contains(update) || std::ranges::all_of(update->operands, [&](const Value& v) {
           return needed.contains(v.op()) || is_variable(*v.op()) ||
                  std::ranges::none_of(ancestors({v}),
                                       [](const ir::Op* op) { return is_source(*op); });
         });
}

/// Marks the parameters that the loss of a recipe other than `train` reads.
void mark_read_by_others(const ir::Graph& graph, const ir::Op& train) {
  Values losses;
  for (const ir::Op* recipe : recipes_of(graph)) {
    if (recipe != &train) losses.push_back(recipe->operands.at(0));
  }
  const Ops read = ancestors(losses);
  for (const auto& op : graph.ops) {
    const bool is_parameter = source_kind(*op) == SourceKind::parameter;
    if (is_parameter && read.contains(op.get())) op->attrs.set(kReadByOtherRecipes, true);
  }
}

bool run_select_recipe(ir::Program& program, const Options& options, const Target&) {
  ir::Graph& graph = program.main();
  const bool trains = options.mode == Mode::train || options.mode == Mode::init;
  if (!trains || recipes_of(graph).empty()) return false;
  const ir::Op& train = recipe_named(graph, options.recipe);
  if (recipes_of(graph).size() == 1) return false;
  const std::vector<std::string> kept = recipe_outputs(graph, train);
  const Ops needed = ancestors({train.operands.at(0)});
  std::erase_if(graph.outputs,
                [&](const ir::Output& o) { return std::ranges::find(kept, o.name) == kept.end(); });
  if (options.mode == Mode::train) mark_read_by_others(graph, train);
  const std::vector<ir::Op*> recipes = recipes_of(graph);
  graph.erase_if([&](const ir::Op& op) {
    if (std::ranges::find(recipes, &op) != recipes.end()) return &op != &train;
    return is_store(op) && !writes_state_of(op, needed);
  });
  return true;
}

}  // namespace

std::vector<std::string> recipe_outputs(const ir::Graph& graph, const ir::Op& train) {
  const Ops needed = ancestors({train.operands.at(0)});
  std::vector<std::string> names;
  for (const ir::Output& o : graph.outputs) {
    if (!is_loss_of_other(o.value, graph, train) && adds_no_source(o.value, needed)) {
      names.push_back(o.name);
    }
  }
  return names;
}

Pass select_recipe_pass() {
  return {.name = "select_recipe",
          .doc = "Keeps one recipe of several, and the outputs and state updates of its loss.",
          .needs = {},
          .provides = {},
          .run = run_select_recipe};
}

}  // namespace fluid
