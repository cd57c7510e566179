#include "ops/functions.h"
#include "ops/operators.h"
#include "ops/optim/optimizer.h"
#include "ops/record.h"
#include "ops/source_kind.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

constexpr size_t kFirstState =
    4;  // operands of an optimizer op: param, grad, lr, update, states...

/// The directive's place in the graph: what is recorded for it is of role optimize.
ir::Graph::Recording recording_for(const ir::Op& train, const std::string& param) {
  return {ir::Role::optimize, train.loc, train.scope, param};
}

/// Updates one parameter; gives (variable, new value) pairs to store.
void update(ir::Graph& graph, const ir::Op& train, const OpDef& optimizer, Value param,
            Value gradient, Value lr, Value counter,
            std::vector<std::pair<std::string, Value>>& stores) {
  const std::string name = param.op()->symbol;
  ir::RecordAs as(graph, recording_for(train, name));
  Values operands = {param, gradient, lr, counter};
  for (size_t i = kFirstState; i < optimizer.inputs->size(); ++i) {
    operands.push_back(record_source(graph, "state", name + "." + optimizer.inputs->at(i).name,
                                     param.type(), {}, train.loc));
  }
  const Values results =
      record(graph, *optimizer.name, operands, optimizer_settings(train.attrs), train.loc);
  for (auto [result, operand] : std::get<Updates>(*optimizer.effects).results) {
    stores.emplace_back(operands.at(static_cast<size_t>(operand)).op()->symbol,
                        results.at(static_cast<size_t>(result)));
  }
}

/// The random state after the step: (seed, runs, first sample) with one more run.
Value advanced(Value rng, const Loc& loc) {
  const auto part = [&](int64_t i) { return slice(rng, {.starts = {i}, .stops = {i + 1}}, loc); };
  const Value runs = part(1);
  return concat({part(0), runs + 1, part(2)}, {.axis = 0}, loc);
}

bool run(ir::Program& program, const Options&, const Target&) {
  ir::Graph& graph = program.main();
  ir::Op* train = find_directive(graph);
  if (train == nullptr) return false;
  const OpDef& optimizer = op_named(train->attrs.get<std::string>("optimizer"), train->loc);
  ir::RecordAs as(graph, recording_for(*train, ""));
  const Value counter = record_source(graph, "state", "update", Type{i64, {}, {}}, {}, train->loc);
  const double rate = train->attrs.get<double>("lr");
  std::map<DType, Value> lr;  // one a dtype, in the precision the update is computed in
  std::vector<std::pair<std::string, Value>> stores;
  const auto& names = train->attrs.get<std::vector<std::string>>("parameters");
  for (size_t i = 0; i < names.size(); ++i) {
    const Value gradient = train->operands.at(i + 1);
    const Value param = graph.find("param", names[i])->result();
    const DType dtype = compute_dtype(param.dtype());
    if (!lr.contains(dtype))
      lr[dtype] = fill(graph, {.type = Type{dtype, {}, {}}, .value = rate}, train->loc);
    update(graph, *train, optimizer, param, gradient, lr[dtype], counter, stores);
  }
  stores.emplace_back("update", counter + 1);
  if (ir::Op* rng = graph.find("state", "rng"))
    stores.emplace_back("rng", advanced(rng->result(), train->loc));
  for (auto& [name, value] : stores) record_store(graph, name, value, train->loc);
  graph.erase_if([&](const ir::Op& op) { return &op == train; });
  return true;
}

}  // namespace

Pass expand_optimizer_pass() {
  return {.name = "expand_optimizer",
          .doc =
              "Replaces the train directive by optimizer ops, their states and the stores that "
              "write parameters, states and counters.",
          .needs = {"gradients"},
          .gives = {"updates"},
          .run = run};
}

}  // namespace fluid
