#include "ir/verify.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "ir/text.h"

namespace fluid::ir {
namespace {

using OpSet = std::unordered_set<const Op*>;
using GraphNames = std::unordered_map<std::string_view, const Graph*>;

[[noreturn]] void fail(const Op& op, const std::string& what) {
  throw UserError(op.loc, describe(op) + ": " + what);
}
[[noreturn]] void fail(const Graph& graph, const std::string& what) {
  throw UserError("graph " + graph_reference(graph.name) + ": " + what);
}
template <class What>
void require(bool holds, const Op& op, const What& what) {
  if (!holds) fail(op, message_text(what));
}

/// Returns the reason why a tensor of `rank` dimensions cannot have this layout, or "".
std::string layout_fault(const Layout& layout, int64_t rank) {
  std::vector<bool> seen(static_cast<size_t>(rank));
  for (const int axis : layout.order) {
    if (axis < 0 || axis >= rank || seen[static_cast<size_t>(axis)]) {
      return "the layout names an axis that is not there, or one twice";
    }
    seen[static_cast<size_t>(axis)] = true;
  }
  if (std::ranges::count(seen, false) > 0) return "the layout leaves out an axis";
  for (const Layout::Block& b : layout.blocks) {
    if (b.axis < 0 || b.axis >= rank || b.size < 1) {
      return "the layout has a block that fits no axis";
    }
  }
  return "";
}

/// Whether the byte size at batch size 1 and sequence length 1 overflows int64_t. Counts dims of 0
/// as 1, so the product of the other dims is checked too.
bool overflows(const Type& type) {
  Type larger = type.at_length(1);
  for (Dim& d : larger.shape) d.size = std::max<int64_t>(d.size, 1);
  return !larger.checked_bytes_at(1);
}

void verify_type(const Op& op, const Type& type) {
  const std::string fault = fault_of(type);
  require(fault.empty(), op, fault);
}

/// Checks that `v` is a result of one of `before`, the ops of `graph` before the use of `v`.
/// Returns the reason why `v` is invalid, or "".
std::string fault_of(const Graph& graph, const OpSet& before, Value v) {
  if (!v) return " is no value";
  if (!before.contains(v.op())) {
    return " is not a result of an earlier op of graph " + graph_reference(graph.name);
  }
  const size_t results = v.op()->results.size();
  if (v.index() >= 0 && v.index() < static_cast<int>(results)) return "";
  return " is result " + std::to_string(v.index()) + " of " + describe(*v.op()) + ", which has " +
         std::to_string(results);
}

void verify_attrs(const GraphNames& graphs, const Op& op) {
  require(op.attrs.size() <= kMaxAttrs, op, "too many attributes");
  std::set<std::string_view> names;
  for (const auto& [name, attr] : op.attrs) {
    require(is_identifier(name), op, [&] { return quote(name) + " cannot name an attribute"; });
    require(names.insert(name).second, op,
            [&] { return "attribute " + quote(name) + " is given twice"; });
    if (const auto* type = std::get_if<Type>(&attr)) verify_type(op, *type);
    if (const auto* graph = std::get_if<GraphRef>(&attr)) {
      require(graphs.contains(graph->name), op,
              [&] { return "there is no graph " + graph_reference(graph->name); });
    }
  }
}

class GraphVerifier {
 public:
  GraphVerifier(const Graph& graph, const GraphNames& graphs) : graph_(graph), graphs_(graphs) {}

  void run() {
    for (const auto& op : graph_.ops) {
      verify_op(*op);
      before_.insert(op.get());
    }
    std::set<std::string_view> names;
    for (const Output& o : graph_.outputs) {
      if (o.name.empty()) fail(graph_, "an output has no name");
      if (!names.insert(o.name).second) fail(graph_, "two outputs are named " + quote(o.name));
      const std::string fault = fault_of(graph_, before_, o.value);
      if (!fault.empty()) fail(graph_, "output " + quote(o.name) + fault);
    }
  }

 private:
  void verify_op(const Op& op) {
    require(is_op_name(op.name), op, [&] { return quote(op.name) + " cannot name an op"; });
    require(op.graph() == &graph_, op, "belongs to another graph");
    require(op.id >= 0 && op.id <= kMaxId, op, "its id is out of range");
    require(ids_.insert(op.id).second, op,
            [&] { return "another op of the graph has its id " + std::to_string(op.id); });
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const std::string fault = fault_of(graph_, before_, op.operands[i]);
      require(fault.empty(), op, [&] { return "operand " + std::to_string(i) + fault; });
    }
    for (const Result& r : op.results) verify_type(op, r.type);
    verify_attrs(graphs_, op);
    verify_symbol(op);
  }

  void verify_symbol(const Op& op) {
    if (op.symbol.empty()) return;
    const bool writes = op.results.empty();
    require((writes ? written_ : declared_).insert(op.symbol).second, op, [&] {
      return quote(op.symbol) + " is " + (writes ? "written" : "declared") + " twice";
    });
  }

  const Graph& graph_;
  const GraphNames& graphs_;
  OpSet before_;
  std::unordered_set<int64_t> ids_;
  std::unordered_set<std::string_view> declared_;
  std::unordered_set<std::string_view> written_;
};

/// Returns the graphs that the attributes of `graph`'s ops refer to.
std::vector<const Graph*> inner_graphs(const Graph& graph, const GraphNames& graphs) {
  std::vector<const Graph*> inner;
  for (const auto& op : graph.ops) {
    for (const auto& [name, attr] : op->attrs) {
      const auto* ref = std::get_if<GraphRef>(&attr);
      if (ref != nullptr) inner.push_back(graphs.at(ref->name));
    }
  }
  return inner;
}

/// Rejects graphs that contain themselves, by topological sorting (Kahn, CACM 1962).
void verify_nesting(const Program& program, const GraphNames& graphs) {
  std::unordered_map<const Graph*, size_t> references;
  for (const auto& g : program.graphs) {
    for (const Graph* inner : inner_graphs(*g, graphs)) ++references[inner];
  }
  std::vector<const Graph*> free;
  for (const auto& g : program.graphs) {
    if (references[g.get()] == 0) free.push_back(g.get());
  }
  while (!free.empty()) {
    const Graph* outer = free.back();
    free.pop_back();
    for (const Graph* inner : inner_graphs(*outer, graphs)) {
      if (--references[inner] == 0) free.push_back(inner);
    }
  }
  for (const auto& g : program.graphs) {
    if (references[g.get()] != 0) fail(*g, "contains itself or is part of graphs that do");
  }
}

}  // namespace

std::string describe(const Op& op) {
  std::string s = is_identifier(op.name) ? op.name : quote(op.name);
  if (!op.symbol.empty()) s += " " + quote(op.symbol);
  if (op.symbol.empty() && !op.results.empty() && is_identifier(op.results[0].name)) {
    s += " %" + op.results[0].name;
  }
  if (op.graph() != nullptr && op.graph()->name != "main") {
    s += " in graph " + graph_reference(op.graph()->name);
  }
  return s;
}

std::string fault_of(const Type& type) {
  if (type.shape.rank() > kMaxRank) {
    return "a tensor has more than " + std::to_string(kMaxRank) + " dimensions";
  }
  const auto batch_dims = std::ranges::count_if(type.shape, [](const Dim& d) { return d.batch; });
  if (batch_dims > 1) return "shape " + type.shape.str() + " has two batch dimensions";
  for (const Dim& d : type.shape) {
    if (d.size < 0) return "shape " + type.shape.str() + " has a negative dimension";
    if (d.length_power > kMaxLengthPower) {
      return "shape " + type.shape.str() + " has a dimension with more than " +
             std::to_string(kMaxLengthPower) + " factors of the length";
    }
  }
  const std::string fault = type.layout ? layout_fault(*type.layout, type.shape.rank()) : "";
  if (fault.empty() && overflows(type)) {
    return "the bytes of " + type.str() + " overflow a 64-bit integer";
  }
  return fault;
}

void verify(const Program& program, const std::function<void(const Op&)>& check_op) {
  if (program.graphs.empty() || program.main().name != "main") {
    throw UserError("the first graph of program " + graph_reference(program.name) + " is not main");
  }
  if (program.graphs.size() > kMaxGraphs) throw UserError("the program has too many graphs");
  GraphNames graphs;
  for (const auto& g : program.graphs) {
    if (!graphs.emplace(g->name, g.get()).second) fail(*g, "another graph has the same name");
  }
  for (const auto& g : program.graphs) GraphVerifier(*g, graphs).run();
  verify_nesting(program, graphs);
  if (!check_op) return;
  for (const auto& g : program.graphs) {
    for (const auto& op : g->ops) check_op(*op);
  }
}

}  // namespace fluid::ir
