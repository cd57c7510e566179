#include <map>

#include "ops/scan.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// Moves the graphs of `compiled` to `program`. The main graph becomes `body`. The other graphs get
/// new names.
void move_graphs(ir::Program& compiled, ir::Program& program, ir::Graph& body) {
  std::map<std::string, std::string> names;
  body.outputs.clear();
  body.ops.clear();
  body.copy_from(compiled.main());
  std::vector<ir::Graph*> moved = {&body};
  for (const auto& graph : compiled.graphs) {
    if (graph.get() == &compiled.main()) continue;
    moved.push_back(&program.add_graph(program.fresh_graph_name("g")));
    moved.back()->copy_from(*graph);
    names[graph->name] = moved.back()->name;
  }
  for (const ir::Graph* graph : moved) {
    for (const auto& op : graph->ops) {
      if (!op->attrs.has("body")) continue;
      op->attrs.set("body", GraphRef{names.at(op->attrs.get<GraphRef>("body").name)});
    }
  }
}

/// Runs the kernel passes on the body of `scan`.
void compile_body(const ir::Op& scan, const Options& options, const Target& target) {
  ir::Program& program = scan.graph()->program();
  ir::Graph& body = *scan_parts(scan).body;
  ir::Program step(program.name);
  for (const ir::Graph* inner : scan_bodies(body)) step.add_graph(inner->name).copy_from(*inner);
  step.main().copy_from(body);
  for (const Pass& pass : kernel_pipeline(options)) pass.run(step, options, target);
  move_graphs(step, program, body);
}

bool run_compile_scans(ir::Program& program, const Options& options, const Target& target) {
  bool changed = false;
  for (const auto& op : program.main().ops) {
    if (!is_scan(*op)) continue;
    compile_body(*op, options, target);
    changed = true;
  }
  return changed;
}

}  // namespace

Pass compile_scans_pass() {
  return {.name = "compile_scans",
          .doc = "Runs the kernel passes on the bodies of scans.",
          .needs = {"typed"},
          .provides = {},
          .run = run_compile_scans};
}

}  // namespace fluid
