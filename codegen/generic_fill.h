#pragma once

#include "codegen/schedule_flat.h"

namespace fluid {

/// If the kernel is a fill (one loop, only scalar operands), makes it generic: see
/// kir::Kernel::generic. A generic fill loads its extent and its float constants from the constants
/// buffer, so that fills of all sizes share code. Most fills compute the initial values of
/// parameters: they run once, and running them takes much less time than compiling them.
void make_generic_if_fill(KernelBuilder& builder);

}  // namespace fluid
