#pragma once

#include "ir/graph.h"

namespace fluid {

/// If `op` casts a parameter (`param` op) to another dtype, returns the parameter, else null.
const ir::Op* parameter_of_cast(const ir::Op& op);

}  // namespace fluid
