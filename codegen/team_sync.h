#pragma once

#include <unordered_set>

#include "codegen/kernel_ir.h"

namespace fluid::kir {

/// The statements of `body`, by their address, after which the threads of a team must wait for each
/// other: what one of them stores there another one reads or overwrites elsewhere in the block, or
/// the other way round. An operand that is not exclusive may be any result of its dtype.
std::unordered_set<const void*> sync_points(const Kernel& kernel, const Block& body);

}  // namespace fluid::kir
