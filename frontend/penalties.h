#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// A loss to which penalties were added: ((loss + p1) + p2) + ...
struct PenalizedLoss {
  Value loss;
  int64_t penalties = 0;  ///< number of penalties
};

/// Adds to `loss` the penalties of `parameters`: l1 sum(|p|) + l2 sum(p^2), where ParameterOptions
/// sets l1 and l2.
PenalizedLoss with_penalties(Value loss, const std::vector<Value>& parameters, const Loc& loc);

}  // namespace fluid
