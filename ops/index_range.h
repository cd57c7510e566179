#pragma once

#include <vector>

#include "ir/type.h"
#include "ops/expr.h"

namespace fluid {

/// Returns the condition 0 <= index < extent, or the constant true if the extents of the loop
/// variables imply the condition. `extents`: loop variable -> its extent.
Expr in_range(const Expr& index, const Dim& extent, const std::vector<Dim>& extents);

}  // namespace fluid
