#pragma once

#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Adds to `loss` the penalties of `parameters`: l1 sum(|p|) + l2 sum(p^2), where ParameterOptions
/// sets l1 and l2.
Value with_penalties(Value loss, const std::vector<Value>& parameters, const Loc& loc);

}  // namespace fluid
