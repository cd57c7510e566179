#pragma once

// oneDNN's convolutions and matmuls as CPU kernels. This header needs no header of oneDNN.

#include <string>
#include <string_view>
#include <vector>

#include "executor/cpu_libraries/library.h"

namespace fluid {

/// Peak rates of all threads together, for the cost model.
struct OnednnRates {
  double flops = 0;       ///< f32 FLOP/s
  double bytes = 0;       ///< memory bandwidth in bytes/s
  int vector_lanes = 16;  ///< f32 lanes of a vector register
};

/// Returns oneDNN's candidates for `op` followed by `epilogue` (a bias, a relu, or both), fastest
/// first. Each kernel has a candidate for the layouts that oneDNN prefers. The kernel may have a
/// second candidate for the layouts of `op`, which reorders tensors in the workspace. f16 tensors
/// are converted to f32 in the workspace, and back. Types must be concrete.
///
/// Returns no candidate if oneDNN has only reference code, or the dtype is not f32, bf16 or f16.
/// Candidates whose layout Layout cannot express are omitted. Candidates depend on the instruction
/// set and the number of OpenMP threads, not on measured times.
std::vector<KernelCandidate> onednn_candidates(const ir::Op& op, const Chain& epilogue,
                                               const OnednnRates& rates);

/// Returns the version of the loaded library: "oneDNN 2.6.3".
std::string onednn_version();

/// Returns the routine of a candidate's `kernel`, for the layouts in the types of `op` and
/// `epilogue`. Its buffers are the operands of `op`, the further operands of the epilogue, and the
/// result of the last op. It writes zeros into the padding of blocked layouts. Throws DeviceError
/// when oneDNN has no such kernel.
LibraryRoutine onednn_kernel(std::string_view kernel, const ir::Op& op, const Chain& epilogue,
                             int64_t batch);

}  // namespace fluid
