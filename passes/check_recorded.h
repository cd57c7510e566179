#pragma once

#include "ir/graph.h"

namespace fluid {

/// Throws UserError for what only the compiler puts into a program: graphs besides main, its ops
/// and attributes.
void check_not_compiled(const ir::Program& program);

}  // namespace fluid
