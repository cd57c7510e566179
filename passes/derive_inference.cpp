#include <algorithm>

#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/inference.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

bool is_absent_feed(const ir::Op& op, const Options& options) {
  return !options.feeds.empty() && source_kind(op) == SourceKind::feed &&
         !options.feeds.contains(op.symbol);
}

bool needs_absent_feed(Value v, const Options& options) {
  return std::ranges::any_of(ancestors({v}),
                             [&](const ir::Op* op) { return is_absent_feed(*op, options); });
}

Values inference_of(ir::Op& op) {
  const OpDef& def = def_of(op);
  return def.inference == nullptr ? Values() : def.inference(ExpandCtx(op));
}

/// The stores that write to cache states (see kCacheAttribute).
std::set<const ir::Op*> cache_stores(const ir::Graph& graph) {
  const auto variables = variables_by_name(graph);
  std::set<const ir::Op*> stores;
  for (const auto& op : graph.ops) {
    const auto written = is_store(*op) ? variables.find(op->symbol) : variables.end();
    if (written == variables.end()) continue;
    if (is_cache(*written->second)) stores.insert(op.get());
  }
  return stores;
}

/// Erases the ops on which neither an output nor any of `stores` depends, such as the train
/// directive and other stores. Must run before ops are replaced by their inference form, because a
/// store may read a result that the inference form lacks.
bool drop_training(ir::Graph& graph, const std::set<const ir::Op*>& stores) {
  Values roots = output_values(graph);
  for (const ir::Op* store : stores) roots.push_back(store->operands.at(0));
  std::set<const ir::Op*> live = ancestors(roots);
  live.insert(stores.begin(), stores.end());
  return erase_all_except(graph, live);
}

bool run_derive_inference(ir::Program& program, const Options& options, const Target&) {
  ir::Graph& graph = program.main();
  std::set<const ir::Op*> stores = cache_stores(graph);
  if (options.mode == Mode::train || options.mode == Mode::init) {
    graph.erase_if([&](const ir::Op& op) { return stores.contains(&op); });
    return !stores.empty();
  }
  if (options.mode == Mode::eval) stores.clear();
  std::erase_if(stores, [&](const ir::Op* store) {
    return needs_absent_feed(store->operands.at(0), options);
  });
  bool changed = drop_training(graph, stores);
  changed |= rewrite_ops(graph, inference_of);
  if (options.mode == Mode::predict) {
    changed |= std::erase_if(graph.outputs, [&](const ir::Output& o) {
                 return needs_absent_feed(o.value, options);
               }) != 0;
    if (graph.outputs.empty()) {
      throw UserError("predict: every output of program '" + program.name +
                      "' needs a feed that is not given");
    }
  }
  return changed;
}

}  // namespace

std::vector<std::string> omitted_outputs(const ir::Program& program, const Options& options) {
  std::vector<std::string> names;
  for (const ir::Output& o : program.main().outputs) {
    if (needs_absent_feed(o.value, options)) names.push_back(o.name);
  }
  return names;
}

Pass derive_inference_pass() {
  return {.name = "derive_inference",
          .doc = "Derives the eval or predict program: inference forms of ops, no training.",
          .needs = {"typed"},
          .provides = {},
          .run = run_derive_inference};
}

}  // namespace fluid
