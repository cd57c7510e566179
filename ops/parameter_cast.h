#pragma once

#include "ir/graph.h"

namespace fluid {

/// Returns the parameter (`param` op) that `op` casts to another dtype; null if `op` is not such a
/// cast.
const ir::Op* parameter_of_cast(const ir::Op& op);

}  // namespace fluid
