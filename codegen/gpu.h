#pragma once

// Kernels for NVIDIA GPUs. A fused group becomes one or several kernels, which are launched one
// after the other. Identifiers call such a kernel a pass. Teams of threads run the blocks of a
// kernel. Kernels are compiled to PTX. Neither this code nor its callers need a CUDA header.

#include <span>
#include <string>
#include <vector>

#include "codegen/kernel_ir.h"
#include "ir/graph.h"

namespace fluid {

/// Alignment in bytes of every buffer. A buffer must be readable up to the next multiple: a vector
/// load that begins inside may reach past the end.
inline constexpr int64_t kGpuAlignment = 16;

/// Returns the kernels of a fused group in launch order. Each starts when the previous one is done.
/// All kernels share the group's buffers (see codegen/schedule.h).
std::vector<kir::Kernel> schedule_gpu(const ir::Graph& body, const std::string& name);

/// Splits a kernel into its body and its finish, as two kernels.
std::vector<kir::Kernel> passes_of(kir::Kernel kernel);

/// One launch. groups() and `threads` are CUDA's grid and block size.
struct GpuLaunch {
  std::string entry;
  int64_t threads = 0;
  int64_t shared_bytes = 0;  ///< static; the launch requests no dynamic shared memory
  Expr blocks;
  int64_t team = 1;
  /// Returns the grid size that gives each team one block. A smaller grid is valid, because teams
  /// stride over the blocks.
  int64_t groups(int64_t batch) const;
};

/// Every entry's arguments are the addresses of `buffers`, in order, then the batch as an i64.
struct GpuProgram {
  std::string ptx;
  std::vector<kir::Buffer> buffers;
  std::vector<GpuLaunch> launches;  ///< in launch order
  int64_t max_batch = 0;            ///< larger batches overflow 32-bit indices
};

/// Returns the launch parameters of a kernel.
GpuLaunch launch_of(const kir::Kernel& pass);

/// Compiles kernels to PTX for `arch` ("sm_90"). Throws UserError for an unsupported `arch`.
GpuProgram compile_ptx(std::span<const kir::Kernel> passes, const std::string& arch);

/// Returns the threads of a CUDA block whose teams have `team` threads.
int64_t threads_of(int64_t team);
/// Returns the largest batch for which 32-bit indices reach every element of every buffer.
int64_t max_batch(std::span<const kir::Buffer> buffers);

}  // namespace fluid
