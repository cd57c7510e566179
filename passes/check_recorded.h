#pragma once

#include "ir/graph.h"

namespace fluid {

/// Throws UserError if the program has graphs, ops or attributes that only compiler passes create.
void check_is_recorded(const ir::Program& program);

}  // namespace fluid
