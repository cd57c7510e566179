#pragma once

// Kernels that a GPU step runs in addition to the kernels of its ops. They keep rejected data from
// changing variables, without a check by the host.

#include "codegen/kernel_ir.h"

namespace fluid {

/// Adds an i64 flag as a buffer to the kernel `pass`. The kernel does nothing when the flag is not
/// 0.
kir::Kernel unless_rejected(kir::Kernel pass);

/// Sets the flag in its second buffer to a nonzero value if any error word in its first buffer is
/// set. The first buffer holds `count` pairs of error words (see codegen/schedule.h). A nonzero
/// flag stays nonzero.
kir::Kernel error_flag_pass(int64_t count);

/// Copies `bytes` bytes from its first buffer to its second.
kir::Kernel copy_pass(int64_t bytes);

}  // namespace fluid
