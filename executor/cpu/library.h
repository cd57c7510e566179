#pragma once

// Library kernels on the CPU, whatever libraries the build has.

#include <functional>
#include <string>

#include "executor/cpu/cpu_target.h"

namespace fluid {

/// Throws OutOfMemory where the system gives less than a step may take outside the arena: oneDNN
/// dies where it gets none for its code.
void check_spare_memory();

/// What the libraries offer for `op` and `epilogue` on `cpu`; nothing where the build has none.
std::vector<Claim> library_claims(const ir::Op& op, const Chain& epilogue,
                                  const TargetDescription& cpu, double bytes_per_second);

/// The libraries' names and versions; empty where the build has none.
std::string library_version();

using LibraryCall = std::function<void()>;
/// Makes calls. The first argument holds the addresses of operands and results, the second the
/// workspace; the call refers to them. They are aligned as an arena's. A call allocates nothing of
/// ours (oneDNN makes a few small allocations) and throws DeviceError when the library fails.
using LibraryBinder = std::function<LibraryCall(void* const* buffers, void* workspace)>;
struct LibraryRoutine {
  LibraryBinder bind;
  int64_t workspace = 0;  ///< bytes that a call needs
};

/// The kernel that `fused` was given to (its attribute `kernel`). Throws InternalError in a build
/// without the library.
LibraryRoutine library_kernel(const ir::Op& fused, int64_t batch);

}  // namespace fluid
