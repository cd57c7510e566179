#pragma once

// Winograd convolutions (winograd_transform.h) with 3x3 and 5x5 filters and stride 1. The kernels
// compute in f32 for every dtype. Images are NHWC, filters OIHW. Kernels need AVX-512.

#include "executor/cpu_libraries/library.h"

namespace fluid {

/// Returns the candidate Winograd kernels for `op` followed by `epilogue`; empty if the Winograd
/// algorithm does not apply. Types must be concrete. `flops_per_second`: peak rate of all threads
/// in f32.
std::vector<KernelCandidate> winograd_candidates(const ir::Op& op, const EpilogueOps& epilogue,
                                                 double flops_per_second);

/// Returns the routine of the candidate named `kernel`; nullopt if `kernel` is not a Winograd
/// kernel. The buffers of the routine are the operands of `op`, the bias if any, and the result.
/// Throws DeviceError when the kernel cannot run the op.
std::optional<LibraryRoutine> winograd_kernel(std::string_view kernel, const ir::Op& op,
                                              const EpilogueOps& epilogue, int64_t batch);

}  // namespace fluid
