#pragma once

// Convolutions of any window and matrix products, in bf16, for CPUs whose matrix units multiply
// tiles (AMX). Images are NHWC, filters OIHW.

#include "executor/cpu_libraries/library.h"

namespace fluid {

/// Returns the candidate AMX kernels for `op` followed by `epilogue`; empty if there is none. Types
/// must be concrete. `flops_per_second`, `bytes_per_second`: peak rates of all threads, in bf16.
std::vector<KernelCandidate> amx_candidates(const ir::Op& op, const EpilogueOps& epilogue,
                                            double flops_per_second, double bytes_per_second);

/// Returns the routine of the candidate named `kernel`; nullopt if `kernel` is not an AMX kernel.
/// The buffers of the routine are the operands of `op`, the bias if any, and the result. Throws
/// DeviceError when the kernel cannot run the op.
std::optional<LibraryRoutine> amx_kernel(std::string_view kernel, const ir::Op& op,
                                         const EpilogueOps& epilogue, int64_t batch);

}  // namespace fluid
