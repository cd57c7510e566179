#pragma once

// Convolutions with 3x3 and 5x5 filters and stride 1 by Winograd's algorithm
// (winograd_transform.h). They compute in f32 for every dtype of the tensors; oneDNN multiplies the
// matrices. Images are channels-last, filters are plain, and channels come in multiples of 16.

#include <memory>

#include "executor/cpu_libraries/library.h"
#include "executor/cpu_libraries/onednn.h"

namespace fluid {

/// Returns the claims for `op` followed by `epilogue`; empty if the algorithm does not apply. Types
/// must be concrete.
std::vector<Claim> winograd_claims(const ir::Op& op, const Chain& epilogue,
                                   const OnednnRates& rates);

/// Returns the kernel of a claim; nullopt if `kernel` is not a Winograd kernel. Buffers: the op's
/// operands, the bias, the result. Throws DeviceError when it cannot run the op.
std::optional<LibraryRoutine> winograd_kernel(std::string_view kernel, const ir::Op& op,
                                              const Chain& epilogue, int64_t batch);

}  // namespace fluid
