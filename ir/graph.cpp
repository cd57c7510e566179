#include "ir/graph.h"

#include <algorithm>
#include <array>
#include <charconv>

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

std::optional<Role> role_named(std::string_view name) {
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

void Graph::move_tail(size_t first, size_t at) {
  check(at <= first && first <= ops.size(), "move_tail: positions out of order");
  std::rotate(ops.begin() + static_cast<ptrdiff_t>(at), ops.begin() + static_cast<ptrdiff_t>(first),
              ops.end());
}

Op* Graph::find(std::string_view op_name, std::string_view symbol) const {
  for (const auto& op : ops) {
    if (op->name == op_name && op->symbol == symbol) return op.get();
  }
  return nullptr;
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

std::map<Value, std::vector<Op*>> Graph::uses() const {
  std::map<Value, std::vector<Op*>> uses;
  for (const auto& op : ops) {
    for (const Value& v : op->operands) uses[v].push_back(op.get());
  }
  return uses;
}

Program::Program(std::string program_name) : name(std::move(program_name)) { add_graph("main"); }

Graph* Program::find(std::string_view graph_name) const {
  for (const auto& g : graphs) {
    if (g->name == graph_name) return g.get();
  }
  return nullptr;
}

Graph& Program::add_graph(std::string graph_name) {
  check(find(graph_name) == nullptr, "graph '" + graph_name + "' exists already");
  graphs.push_back(std::make_unique<Graph>(this, std::move(graph_name)));
  return *graphs.back();
}

std::string Program::fresh_graph_name(std::string_view stem) const {
  std::vector<bool> taken(graphs.size() + 1);  // one number at least is free
  for (const auto& g : graphs) {
    const std::string_view graph_name = g->name;
    if (!graph_name.starts_with(stem)) continue;
    const std::string_view digits = graph_name.substr(stem.size());
    const bool canonical = digits == "0" || (!digits.empty() && digits[0] != '0');
    size_t n = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    const bool number = canonical && error == std::errc() && end == digits.data() + digits.size();
    if (number && n < taken.size()) taken[n] = true;
  }
  const auto free = std::ranges::find(taken, false) - taken.begin();
  return std::string(stem) + std::to_string(free);
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
