#include "frontend/penalties.h"

#include <algorithm>

#include "frontend/recipe_parameters.h"
#include "ops/operators.h"
#include "ops/optim/recipes.h"

namespace fluid {

void set_penalties(ir::Op& train) {
  ir::Graph& graph = *train.graph();
  const size_t first = graph.ops.size();
  Value loss = unpenalized_loss(train);
  int64_t penalties = 0;
  const auto add = [&](Value norm, double factor) {
    loss = loss + cast(norm, loss.dtype(), train.loc) * factor;
    ++penalties;
  };
  for (const Value p : trained_by(train)) {
    const Attrs& options = p.op()->attrs;
    if (!options.get_or("trainable", true)) continue;
    const double l1 = options.get_or("l1", 0.0), l2 = options.get_or("l2", 0.0);
    if (l1 != 0) add(sum(abs(p, train.loc), {}, train.loc), l1);
    if (l2 != 0) add(sum(square(p, train.loc), {}, train.loc), l2);
  }
  train.operands.at(0) = loss;
  train.attrs.erase("penalties");
  if (penalties > 0) train.attrs.set("penalties", penalties);
  const auto at =
      std::ranges::find_if(graph.ops, [&](const auto& op) { return op.get() == &train; });
  graph.move_tail(first, static_cast<size_t>(at - graph.ops.begin()));
}

}  // namespace fluid
