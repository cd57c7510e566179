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

bool needs_absent_feed(const ir::Output& output, const Options& options) {
  return std::ranges::any_of(ancestors({output.value}),
                             [&](const ir::Op* op) { return is_absent_feed(*op, options); });
}

Values inference_of(ir::Op& op) {
  const OpDef& def = def_of(op);
  return def.inference == nullptr ? Values() : def.inference(ExpandCtx(op));
}

/// Erases the ops on which no output depends, such as the train directive and the stores. Must run
/// before ops are replaced by their inference form: a store may read a result that the inference
/// form does not have.
bool drop_training(ir::Graph& graph) {
  return erase_all_except(graph, ancestors(output_values(graph)));
}

bool run_derive_inference(ir::Program& program, const Options& options, const Target&) {
  if (options.mode != Mode::eval && options.mode != Mode::predict) return false;
  ir::Graph& graph = program.main();
  bool changed = drop_training(graph);
  changed |= rewrite_ops(graph, inference_of);
  if (options.mode == Mode::predict) {
    changed |= std::erase_if(graph.outputs, [&](const ir::Output& o) {
                 return needs_absent_feed(o, options);
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
    if (needs_absent_feed(o, options)) names.push_back(o.name);
  }
  return names;
}

Pass derive_inference_pass() {
  return {.name = "derive_inference",
          .doc = "Derives the eval or predict program: inference forms of ops, no training.",
          .needs = {"typed"},
          .gives = {},
          .run = run_derive_inference};
}

}  // namespace fluid
