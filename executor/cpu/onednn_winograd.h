#pragma once

// Convolutions with 3x3 and 5x5 filters and a stride of 1 by Winograd's algorithm
// (winograd_transform.h), in f32 whatever the dtype of the tensors; oneDNN multiplies the matrices.
// Images have their channels innermost, filters are plain, and channels come in multiples of 16.

#include <memory>

#include "executor/cpu/library.h"
#include "executor/cpu/onednn.h"

namespace fluid {

/// The kernels for `op` followed by `epilogue`, with the workspace they need and a predicted time;
/// empty where there are none. Types are concrete.
std::vector<Claim> winograd_claims(const ir::Op& op, const Chain& epilogue,
                                   const OnednnRates& rates);

/// The kernel that a claim names; absent when it is not one of these. Its buffers are the op's
/// operands, then the bias, then the result. Throws DeviceError when it cannot run the op.
std::optional<LibraryRoutine> winograd_kernel(std::string_view kernel, const ir::Op& op,
                                              const Chain& epilogue, int64_t batch);

}  // namespace fluid
