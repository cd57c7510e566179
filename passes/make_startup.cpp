#include "ops/operators.h"
#include "ops/random/initializer.h"
#include "ops/record.h"
#include "ops/source_kind.h"
#include "passes/passes.h"

namespace fluid {
namespace {

struct Variable {
  std::string name;
  Type type;
  Attrs attrs;
  Loc loc;
};

std::vector<Variable> variables_of(const ir::Graph& graph, const std::set<std::string>& wanted) {
  std::vector<Variable> variables;
  for (const auto& op : graph.ops) {
    if (!is_variable(*op) || op->symbol == kRandomState) continue;
    if (!wanted.empty() && !wanted.contains(op->symbol)) continue;
    variables.push_back({op->symbol, op->results.front().type, op->attrs, op->loc});
  }
  return variables;
}

Value seed_of(ir::Graph& graph) {
  const Value state =
      record_source(graph, "state", std::string(kRandomState), Type{i64, {3}, {}}, {}, {});
  return reshape(slice(state, {.starts = {0}, .stops = {1}}, {}), Shape{}, {});
}

bool run(ir::Program& program, const Options& options, const Target&) {
  ir::Graph& graph = program.main();
  const std::vector<Variable> variables = variables_of(graph, options.fill);
  graph.outputs.clear();
  graph.ops.clear();
  const Value seed = seed_of(graph);
  std::vector<Value> values;
  for (const Variable& v : variables) {
    values.push_back(record_initializer(graph, seed, v.name, v.type, v.attrs, v.loc));
  }
  for (size_t i = 0; i < variables.size(); ++i) {
    record_store(graph, variables[i].name, values[i], variables[i].loc);
  }
  return true;
}

}  // namespace

Pass make_startup_pass() {
  return {.name = "make_startup",
          .doc =
              "Turns the program into the one that fills its variables: the initialisers of "
              "parameters and states become ops keyed by the seed in state rng.",
          .needs = {"typed"},
          .gives = {},
          .run = run};
}

}  // namespace fluid
