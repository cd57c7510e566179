#pragma once

#include "ir/graph.h"

namespace fluid {

/// The parameter that `op`, a cast, gives in another dtype; null for any other op.
const ir::Op* cast_parameter(const ir::Op& op);

}  // namespace fluid
