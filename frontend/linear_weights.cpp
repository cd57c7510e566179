#include "frontend/linear_weights.h"

#include <algorithm>
#include <set>

#include "frontend/lora.h"
#include "frontend/penalties.h"
#include "ops/optim/recipes.h"
#include "ops/source_kind.h"

namespace fluid {
namespace {

/// Returns whether `op` is a matmul whose second operand alone is a weight.
bool is_weight_product(const ir::Op& op) {
  if (op.name != "matmul") return false;
  const Value w = op.operands.at(1);
  return source_kind(*w.op()) == SourceKind::parameter && w.shape().rank() == 2 &&
         !is_lora_adapter(*w.op()) && op.operands.at(0) != w;
}

std::set<const ir::Op*> all_penalty_ops(const ir::Graph& graph) {
  std::set<const ir::Op*> ops;
  for (const ir::Op* train : recipes_of(graph)) ops.merge(penalty_ops(*train));
  return ops;
}

/// Names an op by its source line, or else by its result.
std::string reader_text(const ir::Op& op) {
  const std::string text = "'" + op.name + "'";
  if (op.loc.is_known()) return text + " of " + op.loc.str();
  const bool has_name = !op.results.empty() && !op.results.front().name.empty();
  return has_name ? text + " (%" + op.results.front().name + ")" : text;
}

/// Returns the first op or output that reads `weight` and is none of `known`; "" if there is none.
std::string reader_of(const ir::Graph& graph, Value weight, const std::set<const ir::Op*>& known) {
  for (const auto& op : graph.ops) {
    const bool reads = std::ranges::find(op->operands, weight) != op->operands.end();
    if (reads && !known.contains(op.get())) return reader_text(*op);
  }
  for (const ir::Output& output : graph.outputs) {
    if (output.value == weight) return "output '" + output.name + "'";
  }
  return "";
}

}  // namespace

std::string LinearWeight::text() const {
  return "'" + name() + "', which " + other_reader + " reads, too";
}

std::vector<LinearWeight> linear_weights(const ir::Graph& graph) {
  std::vector<LinearWeight> weights;
  for (const auto& op : graph.ops) {
    if (!is_weight_product(*op)) continue;
    const Value value = op->operands[1];
    auto at = std::ranges::find(weights, value, &LinearWeight::value);
    if (at == weights.end()) at = weights.insert(at, {.value = value, .products = {}});
    at->products.push_back(op.get());
  }
  const std::set<const ir::Op*> penalties = all_penalty_ops(graph);
  for (LinearWeight& weight : weights) {
    std::set<const ir::Op*> known = penalties;
    known.insert(weight.products.begin(), weight.products.end());
    weight.other_reader = reader_of(graph, weight.value, known);
  }
  return weights;
}

}  // namespace fluid
