#pragma once

#include "ir/graph.h"

namespace fluid {

/// Returns the parameter whose cast `op` is. Null when `op` is not a cast of a parameter.
const ir::Op* cast_parameter(const ir::Op& op);

}  // namespace fluid
