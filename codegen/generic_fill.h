#pragma once

#include "codegen/schedule_flat.h"

namespace fluid {

/// If the kernel is a fill (one loop, only scalar operands), makes it generic: see
/// kir::Kernel::generic. A generic fill loads its extent and its float constants from the constants
/// buffer, so that fills of all sizes share code. Most fills initialize parameters. They run once,
/// and compiling them takes much longer than running them.
void make_generic_if_fill(KernelBuilder& builder);

}  // namespace fluid
