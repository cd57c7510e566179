#include "passes/rewrite.h"

#include <algorithm>

#include "ops/no_amp.h"
#include "ops/source_kind.h"
#include "ops/table.h"

namespace fluid {

ir::Graph::Recording recording_of(const ir::Op& op) {
  return {op.role, op.loc, op.scope, op.param};
}

void copy_loc_and_amp_exclusion(const ir::Op& op, ir::Graph& graph, size_t first) {
  const bool no_amp = op.attrs.has(kNoAmp);
  for (size_t i = first; i < graph.ops.size(); ++i) {
    graph.ops[i]->loc = op.loc;
    if (no_amp) graph.ops[i]->attrs.set(kNoAmp, true);
  }
}

namespace {

/// Copies the name of a replaced result to its replacement `to`, unless `to` has a name. Error
/// messages and reports show these names.
void inherit_name(std::string& name, Value to) {
  std::string& other = to.op()->results[static_cast<size_t>(to.index())].name;
  if (other.empty()) other = std::move(name);
}

}  // namespace

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
    const size_t first = graph.ops.size();
    {
      ir::ScopedRecording as(graph, recording_of(*op));
      with = replace(*op);
    }
    copy_loc_and_amp_exclusion(*op, graph, first);
    if (with.empty()) {
      graph.ops.push_back(std::move(op));
      continue;
    }
    check(with.size() == op->results.size(),
          [&] { return op->name + " is replaced by another number of values"; });
    for (size_t i = 0; i < with.size(); ++i) {
      mapped[op->result(static_cast<int>(i))] = with[i];
      if (with[i]) inherit_name(op->results[i].name, with[i]);
    }
    dead.push_back(std::move(op));
  }
  for (ir::Output& o : graph.outputs) follow(o.value);
  return !dead.empty();
}

void replace_all_uses(ir::Graph& graph, const Uses& uses, Value from, Value to) {
  if (const auto users = uses.find(from); users != uses.end()) {
    for (ir::Op* user : users->second) std::ranges::replace(user->operands, from, to);
  }
  for (ir::Output& o : graph.outputs) {
    if (o.value == from) o.value = to;
  }
}

ir::Op* only_reader(const ir::Op& op, const Uses& uses, const std::set<Value>& outputs) {
  const Value v(const_cast<ir::Op*>(&op), 0);
  const auto users = uses.find(v);
  if (op.results.size() != 1 || outputs.contains(v)) return nullptr;
  if (users == uses.end() || users->second.size() != 1) return nullptr;
  ir::Op* user = users->second.front();
  return user->results.size() == 1 ? user : nullptr;
}

ir::Op* only_user(const ir::Op& op, const Uses& uses, const std::set<Value>& outputs) {
  ir::Op* user = only_reader(op, uses, outputs);
  return user != nullptr && user->results[0].type == op.results[0].type ? user : nullptr;
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

Values output_values(const ir::Graph& graph) {
  Values values;
  for (const ir::Output& o : graph.outputs) values.push_back(o.value);
  return values;
}

bool erase_all_except(ir::Graph& graph, const std::set<const ir::Op*>& live) {
  const size_t before = graph.ops.size();
  graph.erase_if([&](const ir::Op& op) { return !live.contains(&op); });
  return graph.ops.size() != before;
}

namespace {

/// Whether the op is live even without users: a store, a directive or a collective. All processes
/// must call a collective, even a process that does not use the result.
bool is_root(const ir::Op& op) {
  const Lower& lower = *def_of(op).lower;
  return std::holds_alternative<Store>(lower) || std::holds_alternative<Directive>(lower) ||
         std::holds_alternative<CollectiveOp>(lower);
}

}  // namespace

bool erase_dead_ops(ir::Graph& graph) {
  Values roots = output_values(graph);
  const auto variables = variables_by_name(graph);
  std::set<const ir::Op*> live;
  for (const auto& op : graph.ops) {
    if (!is_root(*op)) continue;
    live.insert(op.get());
    roots.insert(roots.end(), op->operands.begin(), op->operands.end());
    const auto written = is_store(*op) ? variables.find(op->symbol) : variables.end();
    if (written != variables.end()) live.insert(written->second);
  }
  live.merge(ancestors(roots));
  return erase_all_except(graph, live);
}

std::unique_ptr<ir::Program> concrete_copy(const std::vector<const ir::Op*>& chain, int64_t batch) {
  auto program = std::make_unique<ir::Program>("chain");
  ir::Graph& graph = program->main();
  std::map<Value, Value> copies;
  const std::set<const ir::Op*> inside(chain.begin(), chain.end());
  auto concrete = [&](Type type) {
    type.shape = type.shape.at(batch);
    return type;
  };
  for (const ir::Op* op : chain) {
    for (Value v : op->operands) {
      if (inside.contains(v.op()) || copies.contains(v)) continue;
      const auto index = static_cast<int64_t>(copies.size());
      copies[v] = graph.append("arg", {}, {{"index", index}}, {concrete(v.type())})->result();
    }
  }
  for (const ir::Op* op : chain) {
    Values operands;
    for (Value v : op->operands) operands.push_back(copies.at(v));
    std::vector<Type> types;
    for (const ir::Result& r : op->results) types.push_back(concrete(r.type));
    Attrs attrs;
    for (const auto& [name, attr] : op->attrs) {
      const Type* type = std::get_if<Type>(&attr);
      attrs.set(name, type == nullptr ? attr : Attr(concrete(*type)));
    }
    ir::Op* copy = graph.append(op->name, std::move(operands), std::move(attrs), std::move(types));
    for (int r = 0; r < static_cast<int>(op->results.size()); ++r) {
      copies[Value(const_cast<ir::Op*>(op), r)] = copy->result(r);
    }
  }
  return program;
}

std::vector<const ir::Op*> append_copies(ir::Graph& graph, const std::vector<const ir::Op*>& ops,
                                         ir::Role role, std::map<Value, Value>& copies) {
  std::vector<const ir::Op*> appended;
  for (const ir::Op* op : ops) {
    Values operands;
    for (const Value& from : op->operands) {
      operands.push_back(copies.contains(from) ? copies.at(from) : from);
    }
    std::vector<Type> types;
    for (const ir::Result& r : op->results) types.push_back(r.type);
    ir::ScopedRecording as(graph, {.role = role, .loc = op->loc, .scope = op->scope, .param = ""});
    ir::Op* copy =
        graph.append(op->name, std::move(operands), op->attrs, std::move(types), op->loc);
    for (int r = 0; r < static_cast<int>(op->results.size()); ++r) {
      copies[Value(const_cast<ir::Op*>(op), r)] = copy->result(r);
    }
    appended.push_back(copy);
  }
  return appended;
}

std::map<std::string_view, ir::Op*> variables_by_name(const ir::Graph& graph) {
  std::map<std::string_view, ir::Op*> variables;
  for (const auto& op : graph.ops) {
    if (is_variable(*op)) variables.emplace(op->symbol, op.get());
  }
  return variables;
}

ir::Op* variable_named(const ir::Graph& graph, std::string_view name) {
  for (const auto& op : graph.ops) {
    if (op->symbol == name && is_variable(*op)) return op.get();
  }
  return nullptr;
}

bool is_store(const ir::Op& op) { return std::holds_alternative<Store>(*def_of(op).lower); }
bool is_collective(const ir::Op& op) {
  return std::holds_alternative<CollectiveOp>(*def_of(op).lower);
}

size_t move_stores_last(ir::Graph& graph) {
  const auto stores =
      std::ranges::stable_partition(graph.ops, [](const auto& op) { return !is_store(*op); });
  return static_cast<size_t>(stores.begin() - graph.ops.begin());
}

void move_op_last(ir::Graph& graph, const ir::Op* op) {
  const auto at = std::ranges::find(graph.ops, op, &std::unique_ptr<ir::Op>::get);
  std::rotate(at, at + 1, graph.ops.end());
}

ir::Op* find_directive(const ir::Graph& graph) {
  ir::Op* found = nullptr;
  for (const auto& op : graph.ops) {
    if (!std::holds_alternative<Directive>(*def_of(*op).lower)) continue;
    if (found != nullptr) {
      throw UserError(op->loc, op->name + ": the program has two train ops");
    }
    found = op.get();
  }
  return found;
}

}  // namespace fluid
