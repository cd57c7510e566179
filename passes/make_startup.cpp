#include "ops/operators.h"
#include "ops/random/initializer.h"
#include "ops/record.h"
#include "ops/source_kind.h"
#include "passes/pass.h"
#include "passes/startup.h"

namespace fluid {
namespace {

Value seed_of(ir::Graph& graph) {
  const Value state =
      record_source(graph, "state", std::string(kRandomState), Type{i64, {3}, {}}, {}, {});
  return reshape(slice(state, {.starts = {0}, .stops = {1}}, {}), Shape{}, {});
}

void record_startup(ir::Graph& graph, const std::vector<VariableDecl>& variables) {
  const Value seed = seed_of(graph);
  std::vector<Value> values;
  for (const VariableDecl& v : variables) {
    values.push_back(record_initializer(graph, seed, v.name, v.type, v.attrs, v.loc));
  }
  for (size_t i = 0; i < variables.size(); ++i) {
    record_store(graph, variables[i].name, values[i], variables[i].loc);
  }
}

bool run_make_startup(ir::Program& program, const Options&, const Target&) {
  ir::Graph& graph = program.main();
  const std::vector<VariableDecl> variables = declared_variables(graph);
  graph.outputs.clear();
  graph.ops.clear();
  record_startup(graph, variables);
  return true;
}

}  // namespace

std::vector<VariableDecl> declared_variables(const ir::Graph& graph) {
  std::vector<VariableDecl> variables;
  for (const auto& op : graph.ops) {
    if (!is_variable(*op) || op->symbol == kRandomState) continue;
    variables.push_back({op->symbol, op->results.front().type, op->attrs, op->loc});
  }
  return variables;
}

std::unique_ptr<ir::Program> startup_program(const std::string& name,
                                             const std::vector<VariableDecl>& variables) {
  auto program = std::make_unique<ir::Program>(name);
  record_startup(program->main(), variables);
  return program;
}

Pass make_startup_pass() {
  return {.name = "make_startup",
          .doc = "Replaces the program by the startup program, which initialises the variables.",
          .needs = {"typed"},
          .provides = {},
          .run = run_make_startup};
}

}  // namespace fluid
