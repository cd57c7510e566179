#pragma once

// Kernels for NVIDIA GPUs: a fused group becomes passes, kernels of teams of threads that run one
// after the other; these become PTX. No CUDA header is needed, here or by who reads the result.

#include <span>
#include <string>
#include <vector>

#include "codegen/kernel_ir.h"
#include "ir/graph.h"

namespace fluid {

/// What every buffer's address is a multiple of, in bytes, and what it may be read up to: a vector
/// that only begins in a buffer is loaded whole, without a look at what lies behind the end.
inline constexpr int64_t kGpuAlignment = 16;

/// The passes of a fused group (see codegen/schedule.h for its buffers, which all passes share), in
/// order; each starts when the one before is done.
std::vector<kir::Kernel> schedule_gpu(const ir::Graph& body, const std::string& name);

/// A kernel's body and its finish as passes of their own.
std::vector<kir::Kernel> passes_of(kir::Kernel kernel);

/// One launch: `groups` groups of `threads` threads each (CUDA's grid and block).
struct GpuLaunch {
  std::string entry;
  int64_t threads = 0;
  int64_t shared_bytes = 0;  ///< static: none are to be asked for
  Expr blocks;
  int64_t team = 1;
  /// Enough groups for one block a team; fewer do, as teams stride over the blocks.
  int64_t groups(int64_t batch) const;
};

/// Arguments of every entry: the address of each of `buffers`, in order, then the batch as an i64.
struct GpuProgram {
  std::string ptx;
  std::vector<kir::Buffer> buffers;
  std::vector<GpuLaunch> launches;  ///< in order
  int64_t most_samples = 0;         ///< larger batches overflow the kernels' indices
};

/// How a pass is launched.
GpuLaunch launch_of(const kir::Kernel& pass);

/// PTX for `arch` ("sm_90"). Throws UserError for an `arch` that there is no code for.
GpuProgram compile_ptx(std::span<const kir::Kernel> passes, const std::string& arch);

/// Threads of a group whose teams have `team` threads.
int64_t threads_of(int64_t team);
/// The largest batch for which no buffer has more elements than an index of 32 bits counts.
int64_t most_samples(std::span<const kir::Buffer> buffers);

}  // namespace fluid
