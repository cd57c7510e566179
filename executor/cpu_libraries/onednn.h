#pragma once

// CPU kernels that run oneDNN's convolutions and matmuls. This header includes no header of oneDNN.

#include <string>
#include <string_view>
#include <vector>

#include "executor/cpu_libraries/library.h"

namespace fluid {

/// Peak rates of all threads together, for the cost model.
struct OnednnRates {
  double flops_per_second = 0;       ///< f32 FLOP/s
  double bf16_flops_per_second = 0;  ///< bf16 FLOP/s
  double bytes_per_second = 0;       ///< memory bandwidth in bytes/s
  int vector_lanes = 16;             ///< f32 lanes of a vector register
};

/// Returns oneDNN's candidate kernels for `op` followed by `epilogue` (a bias, a relu, or both),
/// fastest first. Types must be concrete. Each kernel has a candidate with the layouts that oneDNN
/// prefers. If these differ from the layouts of `op`, the kernel has a second candidate with the
/// layouts of `op`, which reorders tensors in the workspace. If oneDNN has no optimised kernel for
/// a half-precision op, its operands are converted to f32 in the workspace, and the result is
/// converted back.
///
/// Returns no candidate if oneDNN has only reference code for the op in f32, too, or if the dtype
/// is not f32, bf16 or f16. Omits candidates with a layout that class Layout cannot represent. The
/// candidates depend on the instruction set and the number of OpenMP threads, not on measured
/// times.
std::vector<KernelCandidate> onednn_candidates(const ir::Op& op, const EpilogueOps& epilogue,
                                               const OnednnRates& rates);

/// Returns the version of the loaded library, such as "oneDNN 2.6.3".
std::string onednn_version();
/// Returns the instruction sets and the math mode that oneDNN uses, as text. Environment variables
/// such as ONEDNN_MAX_CPU_ISA set them.
std::string onednn_settings();

/// Returns the routine of the candidate named `kernel`. The routine uses the layouts in the types
/// of `op` and `epilogue`. Its buffers are the operands of `op`, the additional operands of the
/// epilogue, and the result of the last op. The routine writes zeros into the padding of blocked
/// layouts. Throws DeviceError when oneDNN has no such kernel.
LibraryRoutine onednn_kernel(std::string_view kernel, const ir::Op& op, const EpilogueOps& epilogue,
                             int64_t batch);

}  // namespace fluid
