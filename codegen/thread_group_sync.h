#pragma once

#include <unordered_set>

#include "ops/kernel_ir.h"

namespace fluid::kir {

/// Returns the addresses of the statements in `body` after which the thread group needs a barrier.
/// Such a statement writes a buffer that other threads access elsewhere in the block, or reads a
/// buffer that other threads write. An operand without Buffer::noalias may alias any result of
/// the same dtype.
std::unordered_set<const void*> sync_points(const Kernel& kernel, const Block& body);

}  // namespace fluid::kir
