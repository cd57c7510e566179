#include "frontend/penalties.h"

#include "ops/operators.h"

namespace fluid {

PenalizedLoss with_penalties(Value loss, const std::vector<Value>& parameters, const Loc& loc) {
  PenalizedLoss penalized{loss};
  const auto add = [&](Value norm, double factor) {
    penalized.loss = penalized.loss + cast(norm, loss.dtype(), loc) * factor;
    ++penalized.penalties;
  };
  for (const Value p : parameters) {
    const Attrs& options = p.op()->attrs;
    if (!options.get_or("trainable", true)) continue;
    const double l1 = options.get_or("l1", 0.0), l2 = options.get_or("l2", 0.0);
    if (l1 != 0) add(sum(abs(p, loc), {}, loc), l1);
    if (l2 != 0) add(sum(square(p, loc), {}, loc), l2);
  }
  return penalized;
}

}  // namespace fluid
