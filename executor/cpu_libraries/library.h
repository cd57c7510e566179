#pragma once

// Library kernels on the CPU: those of the libraries that the build includes, and our
// own convolutions.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "executor/host/target_description.h"
#include "passes/target.h"

namespace fluid {

/// Throws OutOfMemory unless 64 MiB can be allocated outside the arena. oneDNN crashes when it
/// cannot allocate memory for generated code.
void check_spare_memory();

/// Predicted overhead of a library call that runs one parallel region.
inline constexpr double kLibraryCallSeconds = 4e-6;

/// Returns the library kernels that can compute `op` and `epilogue` on `cpu`, with predicted times,
/// fastest first. `bytes_per_second`: bandwidth of the cache or memory that holds the op's tensors.
std::vector<KernelCandidate> library_candidates(const ir::Op& op, const EpilogueOps& epilogue,
                                                const TargetDescription& cpu,
                                                double bytes_per_second);

/// Returns the libraries' names and versions; "" in a build without libraries.
std::string library_version();
/// Returns text of the settings, such as the instruction sets that an environment variable allows,
/// by which libraries choose kernels; "" in a build without libraries.
std::string library_settings();

/// A library kernel with bound addresses.
struct LibraryCall {
  std::function<void()> run;
  /// Rebinds the kernel to other operands and results, without allocating. Null if the kernel
  /// cannot be rebound.
  std::function<void(void* const* buffers)> rebind = {};
};
/// Binds a library kernel to the addresses of its operands and results (`buffers`) and of its
/// workspace. All addresses must have the alignment of arena buffers. LibraryCall::run throws
/// DeviceError when the library fails. LibraryCall::run allocates nothing, except for small blocks
/// that oneDNN allocates internally.
using LibraryBinder = std::function<LibraryCall(void* const* buffers, void* workspace)>;
/// A library kernel whose buffer addresses are not yet bound.
struct LibraryRoutine {
  LibraryBinder bind;
  int64_t workspace = 0;  ///< bytes of workspace that a call needs
};

/// Returns the library kernel that attribute `kernel` of `fused` names. Throws InternalError in a
/// build without the library.
LibraryRoutine library_kernel(const ir::Op& fused, int64_t batch);
/// Returns library_kernel() of each of `fused`, for kernels that run on `threads` threads. Prepares
/// that many kernels at a time, because a library generates code for each of them.
std::vector<LibraryRoutine> library_kernels(std::span<const ir::Op* const> fused, int64_t batch,
                                            int threads);

}  // namespace fluid
