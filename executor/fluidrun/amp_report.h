#pragma once

#include "ir/graph.h"
#include "passes/options.h"

namespace fluid {

/// Prints what mixed precision does with each op of a program at the stage of the pass amp_cast:
/// its precision and why, then the casts and the bytes that results in half save at
/// `options.batch`. Without `options.amp` it is that of level o1.
void print_amp_report(const ir::Program& program, const Options& options);

}  // namespace fluid
