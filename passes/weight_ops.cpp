#include "passes/weight_ops.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "ops/group.h"
#include "ops/random/initializer.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// The names of the variables that `graph` writes.
std::set<std::string_view> stored_variables(const ir::Graph& graph) {
  std::set<std::string_view> names;
  for (const auto& op : graph.ops) {
    if (is_store(*op)) names.insert(op->symbol);
  }
  return names;
}

bool is_weight(const ir::Op& op, const std::set<std::string_view>& stored) {
  return is_variable(op) && op.symbol != kRandomState && !is_cache(op) &&
         !op.attrs.get_or(kScratchAttribute, false) && !stored.contains(op.symbol);
}

bool has_batch(const Type& type) { return type.shape.has_batch(); }

/// Whether the result of the op depends directly on the batch size, not only through the values of
/// its operands.
bool depends_on_batch(const ir::Op& op) {
  for (const auto& [name, attr] : op.attrs) {
    const Type* type = std::get_if<Type>(&attr);
    if (type != nullptr && has_batch(*type)) return true;
  }
  if (is_alias(op)) return false;
  bool reads_batch = false;
  for (const Expr& body : lower_op(op).bodies) {
    for_each_node(body, [&](const Expr& e) { reads_batch |= e.op() == ScalarOp::batch; });
  }
  return reads_batch;
}

/// Whether the op depends only on its operands, so that another program may run it.
bool is_movable(const ir::Op& op) {
  const OpDef& def = def_of(op);
  const bool lowers = std::holds_alternative<Map>(*def.lower) ||
                      std::holds_alternative<Reduce>(*def.lower) ||
                      std::holds_alternative<Alias>(*def.lower);
  return lowers && std::holds_alternative<Pure>(*def.effects) &&
         std::ranges::none_of(op.results, has_batch, &ir::Result::type) &&
         checked_operands(op).empty() && !depends_on_batch(op);
}

}  // namespace

std::map<const ir::Op*, bool> weight_ops(const ir::Graph& graph) {
  const std::set<std::string_view> stored = stored_variables(graph);
  std::map<const ir::Op*, bool> ops;
  for (const auto& op : graph.ops) {
    if (is_weight(*op, stored)) {
      ops[op.get()] = true;
      continue;
    }
    const auto is_known = [&](const Value& v) { return ops.contains(v.op()); };
    if (!is_movable(*op) || !std::ranges::all_of(op->operands, is_known)) continue;
    ops[op.get()] =
        std::ranges::any_of(op->operands, [&](const Value& v) { return ops.at(v.op()); });
  }
  return ops;
}

}  // namespace fluid
