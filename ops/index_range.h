#pragma once

#include <vector>

#include "ir/type.h"
#include "ops/expr.h"

namespace fluid {

/// Returns the condition that `index` is in [0, extent): the constant true if that follows from the
/// extents of the loop variables. `extents`: loop variable -> its extent.
Expr in_range(const Expr& index, const Dim& extent, const std::vector<Dim>& extents);

}  // namespace fluid
