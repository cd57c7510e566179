#pragma once

// oneDNN's convolutions and matrix products as CPU kernels. No oneDNN type appears here.

#include <string>
#include <string_view>
#include <vector>

#include "executor/cpu_libraries/library.h"

namespace fluid {

/// Rates of all threads together, as the cost model assumes them.
struct OnednnRates {
  double flops = 0;       ///< f32 operations per second
  double bytes = 0;       ///< memory bandwidth in bytes per second
  int vector_lanes = 16;  ///< f32 lanes of a vector; channels are padded to a multiple
};

/// Returns oneDNN's claims for `op` followed by `epilogue` (a bias, a relu, or both), best first. A
/// routine has a claim for the layouts that oneDNN prefers. It may have another for the given
/// layouts, which reorders tensors in the workspace. f16 tensors are converted to f32 in the
/// workspace, and back. The result is empty if oneDNN has only reference code, or the dtype is not
/// f32, bf16 or f16. Claims with a layout that Layout cannot express are omitted. Types must be
/// concrete. The claims depend on the machine's instruction set and the threads of the OpenMP pool,
/// not on timing.
std::vector<Claim> onednn_claims(const ir::Op& op, const Chain& epilogue, const OnednnRates& rates);

/// Returns the version of the loaded library: "oneDNN 2.6.3".
std::string onednn_version();

/// Returns the kernel of a claim, for the layouts in the types of `op` and `epilogue`. The last
/// op's result is the kernel's result. Buffers: the op's operands, the epilogue's further operands
/// in order, the result. The kernel writes zeros into the padding of blocked layouts. Throws
/// DeviceError when oneDNN has no such kernel.
LibraryRoutine onednn_kernel(std::string_view kernel, const ir::Op& op, const Chain& epilogue,
                             int64_t batch);

}  // namespace fluid
