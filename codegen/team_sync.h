#pragma once

#include <unordered_set>

#include "codegen/kernel_ir.h"

namespace fluid::kir {

/// Returns the addresses of the statements in `body` after which a team's threads must synchronize.
/// There one thread stores data that another thread reads or overwrites elsewhere in the block, or
/// the other way round. An operand that is not exclusive may alias any result of its dtype.
std::unordered_set<const void*> sync_points(const Kernel& kernel, const Block& body);

}  // namespace fluid::kir
