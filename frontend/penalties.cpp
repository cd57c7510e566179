#include "frontend/penalties.h"

#include <algorithm>
#include <vector>

#include "frontend/recipe_parameters.h"
#include "ops/operators.h"
#include "ops/optim/recipes.h"
#include "ops/source_kind.h"

namespace fluid {
namespace {

/// Erases `ops`, unless other ops or outputs of the graph use their results.
void erase_unused(ir::Graph& graph, const std::set<const ir::Op*>& ops) {
  const auto is_result = [&](const Value& v) { return ops.contains(v.op()); };
  const bool is_output = std::ranges::any_of(
      graph.outputs, [&](const ir::Output& output) { return is_result(output.value); });
  const bool has_user = std::ranges::any_of(graph.ops, [&](const auto& op) {
    return !ops.contains(op.get()) && std::ranges::any_of(op->operands, is_result);
  });
  if (is_output || has_user) return;
  graph.erase_if([&](const ir::Op& op) { return ops.contains(&op); });
}

}  // namespace

std::set<const ir::Op*> penalty_ops(const ir::Op& train) {
  std::set<const ir::Op*> ops;
  Value loss = train.operands.at(0);
  auto penalties = train.attrs.get_or("penalties", int64_t{0});
  for (; penalties > 0 && loss.op()->name == "add"; --penalties) {
    ops.insert(loss.op());
    std::vector<const ir::Op*> unvisited = {loss.op()->operands.at(1).op()};
    while (!unvisited.empty()) {
      const ir::Op* op = unvisited.back();
      unvisited.pop_back();
      if (source_kind(*op) != SourceKind::none || !ops.insert(op).second) continue;
      for (const Value v : op->operands) unvisited.push_back(v.op());
    }
    loss = loss.op()->operands.at(0);
  }
  return ops;
}

void set_penalties(ir::Op& train) {
  ir::Graph& graph = *train.graph();
  const std::set<const ir::Op*> old_ops = penalty_ops(train);
  const size_t first = graph.ops.size();
  Value loss = unpenalized_loss(train);
  int64_t penalties = 0;
  {
    const ir::ScopedRecording as(graph, {train.role, train.loc, train.scope, train.param});
    const auto add = [&](Value norm, double factor) {
      loss = loss + cast(norm, loss.dtype()) * factor;
      ++penalties;
    };
    for (const Value p : recipe_parameters(train)) {
      const Attrs& options = p.op()->attrs;
      if (!options.get_or("trainable", true)) continue;
      const double l1 = options.get_or("l1", 0.0), l2 = options.get_or("l2", 0.0);
      if (l1 != 0) add(sum(abs(p)), l1);
      if (l2 != 0) add(sum(square(p)), l2);
    }
  }
  train.operands.at(0) = loss;
  train.attrs.erase("penalties");
  if (penalties > 0) train.attrs.set("penalties", penalties);
  const auto at =
      std::ranges::find_if(graph.ops, [&](const auto& op) { return op.get() == &train; });
  graph.move_tail(first, static_cast<size_t>(at - graph.ops.begin()));
  erase_unused(graph, old_ops);
}

}  // namespace fluid
