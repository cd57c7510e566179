#include "passes/rewrite.h"

#include "ops/table.h"

namespace fluid {

ir::Graph::Recording recording_of(const ir::Op& op) {
  return {op.role, op.loc, op.scope, op.param};
}

bool rewrite_ops(ir::Graph& graph, const std::function<Values(ir::Op&)>& replace) {
  std::vector<std::unique_ptr<ir::Op>> old = std::move(graph.ops);
  graph.ops.clear();
  std::vector<std::unique_ptr<ir::Op>> dead;
  std::map<Value, Value> mapped;
  auto follow = [&](Value& v) {
    if (auto it = mapped.find(v); it != mapped.end()) v = it->second;
  };
  for (std::unique_ptr<ir::Op>& op : old) {
    for (Value& v : op->operands) follow(v);
    Values with;
    {
      ir::RecordAs as(graph, recording_of(*op));
      with = replace(*op);
    }
    if (with.empty()) {
      graph.ops.push_back(std::move(op));
      continue;
    }
    check(with.size() == op->results.size(), op->name + " is replaced by another number of values");
    for (size_t i = 0; i < with.size(); ++i) mapped[op->result(static_cast<int>(i))] = with[i];
    dead.push_back(std::move(op));
  }
  for (ir::Output& o : graph.outputs) follow(o.value);
  return !dead.empty();
}

std::set<const ir::Op*> ancestors(const Values& roots) {
  std::set<const ir::Op*> seen;
  std::vector<const ir::Op*> todo;
  auto visit = [&](Value v) {
    if (v && seen.insert(v.op()).second) todo.push_back(v.op());
  };
  for (Value v : roots) visit(v);
  while (!todo.empty()) {
    const ir::Op* op = todo.back();
    todo.pop_back();
    for (Value v : op->operands) visit(v);
  }
  return seen;
}

ir::Op* find_directive(const ir::Graph& graph) {
  for (const auto& op : graph.ops) {
    if (std::holds_alternative<Directive>(*def_of(*op).lower)) return op.get();
  }
  return nullptr;
}

}  // namespace fluid
