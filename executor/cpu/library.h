#pragma once

// Library kernels on the CPU, whatever libraries the build has.

#include <functional>

#include "executor/cpu/cpu_target.h"

namespace fluid {

/// What the libraries offer for `op` and `epilogue` on `cpu`; nothing where the build has none.
std::vector<Claim> library_claims(const ir::Op& op, const Chain& epilogue,
                                  const TargetDescription& cpu, double bytes_per_second);

/// Makes calls of the library kernel that the `fused` op was given to (its attribute `kernel`).
/// The first argument holds the addresses of its operands and results, the second its workspace;
/// the call it returns refers to them. Throws InternalError in a build without the library.
using LibraryCall = std::function<void()>;
using LibraryBinder = std::function<LibraryCall(void* const* buffers, void* workspace)>;
LibraryBinder library_kernel(const ir::Op& fused, int64_t batch);

}  // namespace fluid
