#include "ir/graph.h"

#include <algorithm>
#include <array>

namespace fluid {

const Type& Value::type() const {
  check(op_ != nullptr, "type() of a null value");
  return op_->results[static_cast<size_t>(index_)].type;
}

namespace ir {

namespace {
constexpr std::array<std::string_view, kRoles> kRoleNames = {"forward", "backward", "optimize",
                                                             "comm", "metric"};
}

std::string_view name_of(Role role) { return kRoleNames[static_cast<size_t>(role)]; }

std::optional<Role> parse_role(std::string_view name) {
  for (size_t i = 0; i < kRoleNames.size(); ++i) {
    if (kRoleNames[i] == name) return static_cast<Role>(i);
  }
  return std::nullopt;
}

Op* Graph::append(std::string op_name, std::vector<Value> operands, Attrs attrs,
                  std::vector<Type> types, Loc loc) {
  auto op = std::make_unique<Op>();
  op->name = std::move(op_name);
  op->operands = std::move(operands);
  op->attrs = std::move(attrs);
  for (Type& t : types) op->results.push_back({std::move(t), ""});
  op->role = recording.role;
  op->scope = recording.scope;
  op->param = recording.param;
  op->loc = recording.loc ? *recording.loc : std::move(loc);
  op->id = next_id_++;
  op->graph_ = this;
  ops.push_back(std::move(op));
  return ops.back().get();
}

void Graph::restore_id(Op& op, int64_t id) {
  op.id = id;
  next_id_ = std::max(next_id_ - 1, id + 1);
}

void Graph::splice_ops(std::vector<std::unique_ptr<Op>> spliced) {
  for (std::unique_ptr<Op>& op : spliced) {
    op->graph_ = this;
    next_id_ = std::max(next_id_, op->id + 1);
    ops.push_back(std::move(op));
  }
}

void Graph::move_tail(size_t first, size_t destination) {
  check(destination <= first && first <= ops.size(), "move_tail: positions out of order");
  std::rotate(ops.begin() + static_cast<ptrdiff_t>(destination),
              ops.begin() + static_cast<ptrdiff_t>(first), ops.end());
}

Op* Graph::find(std::string_view op_name, std::string_view symbol) const {
  for (const auto& op : ops) {
    if (op->name == op_name && op->symbol == symbol) return op.get();
  }
  return nullptr;
}

Op* Graph::find_indexed(std::string_view op_name, std::string_view symbol) {
  const auto key_of = [](std::string_view n, std::string_view s) {
    return std::string(n) + ' ' + std::string(s);
  };
  const size_t seen = index_.seen;
  const bool only_appended =
      seen <= ops.size() && (seen == 0 || ops[seen - 1]->id == index_.last_id);
  if (!only_appended) index_ = {};
  for (; index_.seen < ops.size(); ++index_.seen) {
    const Op& op = *ops[index_.seen];
    index_.last_id = op.id;
    if (!op.symbol.empty()) index_.positions.emplace(key_of(op.name, op.symbol), index_.seen);
  }
  const auto found = index_.positions.find(key_of(op_name, symbol));
  if (found == index_.positions.end()) return nullptr;
  Op* op = ops[found->second].get();
  if (op->name == op_name && op->symbol == symbol) return op;
  index_ = {};  // the index is stale, because earlier ops were moved
  return find(op_name, symbol);
}

void Graph::replace_all_uses(Value from, Value to) {
  for (const auto& op : ops) std::replace(op->operands.begin(), op->operands.end(), from, to);
  for (Output& o : outputs) {
    if (o.value == from) o.value = to;
  }
}

void Graph::erase_if(const std::function<bool(const Op&)>& dead) {
  std::erase_if(ops, [&](const std::unique_ptr<Op>& op) { return dead(*op); });
}

Uses Graph::uses() const {
  Uses uses;
  for (const auto& op : ops) {
    for (const Value& v : op->operands) uses[v].push_back(op.get());
  }
  return uses;
}

Program::Program(std::string program_name) : name(std::move(program_name)) { add_graph("main"); }

Graph* Program::find(std::string_view graph_name) const {
  const auto found = by_name_.find(std::string(graph_name));
  return found == by_name_.end() ? nullptr : found->second;
}

Graph& Program::add_graph(std::string graph_name) {
  check(find(graph_name) == nullptr, [&] { return "graph '" + graph_name + "' exists already"; });
  graphs.push_back(std::make_unique<Graph>(this, std::move(graph_name)));
  by_name_[graphs.back()->name] = graphs.back().get();
  return *graphs.back();
}

bool Program::erase_graphs(const std::function<bool(const Graph&)>& dead) {
  const size_t before = graphs.size();
  std::erase_if(by_name_, [&](const auto& named) { return dead(*named.second); });
  std::erase_if(graphs, [&](const auto& graph) { return dead(*graph); });
  taken_.clear();
  return graphs.size() < before;
}

std::string Program::fresh_graph_name(const std::string& stem) {
  size_t& number = taken_[stem];
  while (find(stem + std::to_string(number)) != nullptr) ++number;
  return stem + std::to_string(number);
}

void Graph::copy_from(const Graph& from) {
  check(ops.empty() && outputs.empty(), "copy_from needs an empty graph");
  std::map<const Op*, Op*> copies;
  auto mapped = [&](Value v) { return v ? Value(copies.at(v.op()), v.index()) : v; };
  for (const auto& op : from.ops) {
    auto copy = std::make_unique<Op>(*op);
    copy->graph_ = this;
    for (Value& v : copy->operands) v = mapped(v);
    copies[op.get()] = copy.get();
    ops.push_back(std::move(copy));
  }
  for (const Output& o : from.outputs) outputs.push_back({o.name, mapped(o.value)});
  next_id_ = from.next_id_;
}

std::unique_ptr<Program> Program::clone() const {
  auto copy = std::make_unique<Program>(name);
  for (const auto& g : graphs) {
    Graph* to = copy->find(g->name);
    (to != nullptr ? *to : copy->add_graph(g->name)).copy_from(*g);
  }
  return copy;
}

}  // namespace ir
}  // namespace fluid
