#pragma once

// Direct convolutions in f32, of any window of more than one pixel. Images are NHWC, filters OIHW.
// Kernels need AVX-512.

#include "executor/cpu_libraries/library.h"

namespace fluid {

/// Returns the candidate direct kernels for `op` followed by `epilogue`; empty if there is none.
/// Types must be concrete. `flops_per_second`, `bytes_per_second`: peak rates of all threads.
std::vector<KernelCandidate> direct_candidates(const ir::Op& op, const EpilogueOps& epilogue,
                                               double flops_per_second, double bytes_per_second);

/// Returns the routine of the candidate named `kernel`; nullopt if `kernel` is not a direct kernel.
/// The buffers of the routine are the operands of `op`, the bias if any, and the result. Throws
/// DeviceError when the kernel cannot run the op.
std::optional<LibraryRoutine> direct_kernel(std::string_view kernel, const ir::Op& op,
                                            const EpilogueOps& epilogue, int64_t batch);

}  // namespace fluid
