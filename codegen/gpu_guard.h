#pragma once

// GPU kernels that a step runs in addition to the kernels of its ops. If an op has rejected data
// (set an error word), these kernels keep the step from changing variables. The host then need not
// wait for the error words before it launches the updates.

#include "ops/kernel_ir.h"

namespace fluid {

/// Returns `kernel` with an additional last buffer parameter, an i64 flag. The kernel does nothing
/// if the flag is not 0.
kir::Kernel skip_if_rejected(kir::Kernel kernel);

/// Returns a kernel that sets the flag in its second buffer to a nonzero value if any error word in
/// its first buffer is set. The first buffer holds `count` pairs of error words (see
/// codegen/schedule.h). A nonzero flag stays nonzero.
kir::Kernel error_flag_kernel(int64_t count);

/// Returns a kernel that copies `bytes` bytes from its first buffer to its second.
kir::Kernel copy_kernel(int64_t bytes);

}  // namespace fluid
