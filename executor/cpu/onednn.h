#pragma once

// oneDNN's convolutions and matrix products as kernels of the CPU. No oneDNN type appears here.

#include <string>
#include <string_view>
#include <vector>

#include "executor/cpu/library.h"

namespace fluid {

/// What the cost model assumes of all threads together.
struct OnednnRates {
  double flops = 0;       ///< f32 operations a second
  double bytes = 0;       ///< to and from memory a second
  int vector_lanes = 16;  ///< f32 lanes: channels are padded to a multiple
};

/// oneDNN's kernels for `op` followed by `epilogue` (a bias, a relu, or both), best first: each in
/// the layouts it asks for, with the workspace it needs and a predicted time, and in the layouts
/// that the types have, reordering in its workspace. f16 is copied to f32 in the workspace, and
/// back. Empty when there is none but reference code, and for other dtypes than f32, bf16 and f16.
/// A claim of layouts that a Layout cannot say is left out. Types are concrete. Depends on the
/// machine's instruction set and on the threads of the OpenMP pool, not on a clock.
std::vector<Claim> onednn_claims(const ir::Op& op, const Chain& epilogue, const OnednnRates& rates);

/// "oneDNN 2.6.3": the library that is loaded.
std::string onednn_version();

/// The kernel that a claim names, for the layouts in the types of the op and its epilogue (the last
/// op's result is the kernel's result). Its buffers are the op's operands, then the epilogue's
/// further operands in order, then the result; it writes zeros into the padding of blocked ones.
/// Throws DeviceError when oneDNN has none.
LibraryRoutine onednn_kernel(std::string_view kernel, const ir::Op& op, const Chain& epilogue,
                             int64_t batch);

}  // namespace fluid
