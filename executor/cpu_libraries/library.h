#pragma once

// Library kernels on the CPU, for whichever libraries the build has.

#include <functional>
#include <string>

#include "executor/host/target_description.h"
#include "passes/target.h"

namespace fluid {

/// Throws OutOfMemory when the system lacks the memory that a step may take outside the arena.
/// oneDNN crashes when it gets no memory for its code.
void check_spare_memory();

/// Returns the libraries' claims for `op` and `epilogue` on `cpu`. Empty in a build without
/// libraries.
std::vector<Claim> library_claims(const ir::Op& op, const Chain& epilogue,
                                  const TargetDescription& cpu, double bytes_per_second);

/// Returns the libraries' names and versions; "" in a build without libraries.
std::string library_version();

using LibraryCall = std::function<void()>;
/// Binds a routine to memory. `buffers` holds the addresses of operands and results; all addresses
/// are aligned like an arena's. The call refers to this memory. It allocates nothing of ours
/// (oneDNN makes a few small allocations) and throws DeviceError when the library fails.
using LibraryBinder = std::function<LibraryCall(void* const* buffers, void* workspace)>;
struct LibraryRoutine {
  LibraryBinder bind;
  int64_t workspace = 0;  ///< bytes that a call needs
};

/// Returns the routine that the attribute `kernel` of `fused` names. Throws InternalError in a
/// build without the library.
LibraryRoutine library_kernel(const ir::Op& fused, int64_t batch);

}  // namespace fluid
