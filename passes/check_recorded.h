#pragma once

#include "ir/graph.h"

namespace fluid {

/// Throws UserError for graphs, ops and attributes that only the compiler creates.
void check_not_compiled(const ir::Program& program);

}  // namespace fluid
