#include "frontend/penalties.h"

#include "ops/operators.h"

namespace fluid {
Value with_penalties(Value loss, const std::vector<Value>& parameters, const Loc& loc) {
  for (const Value p : parameters) {
    const Attrs& options = p.op()->attrs;
    if (!options.get_or("trainable", true)) continue;
    const double l1 = options.get_or("l1", 0.0), l2 = options.get_or("l2", 0.0);
    if (l1 != 0) loss = loss + cast(sum(abs(p, loc), {}, loc), loss.dtype(), loc) * l1;
    if (l2 != 0) loss = loss + cast(sum(square(p, loc), {}, loc), loss.dtype(), loc) * l2;
  }
  return loss;
}

}  // namespace fluid
