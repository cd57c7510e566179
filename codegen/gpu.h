#pragma once

// Generates kernels for NVIDIA GPUs as PTX. A fused group becomes one or several kernels, which are
// launched in order. A thread group runs one block of the kernel IR (kir::Kernel::blocks) at a
// time. A thread group is a whole CUDA thread block, or some threads of one warp. This code
// includes no CUDA headers.

#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/kernel_ir.h"

namespace fluid {

/// Alignment of every buffer, in bytes. The memory of a buffer must be readable up to the next
/// multiple of this alignment, because a vector load may extend past the end of the buffer.
inline constexpr int64_t kGpuAlignment = 16;

/// Schedules a fused group for a GPU. Returns its kernels in launch order. Each kernel starts after
/// the previous one has finished. All kernels have the same buffers, in the order that
/// codegen/schedule.h defines.
std::vector<kir::Kernel> schedule_gpu(const ir::Graph& body, const std::string& name);

/// Splits a kernel that has a finish function into two kernels. The second kernel runs the finish
/// function. Returns other kernels unchanged.
std::vector<kir::Kernel> split_off_finish(kir::Kernel kernel);

/// Launch parameters of one kernel. `entry` is the name of the PTX function; `threads` is the CUDA
/// block size.
struct GpuLaunch {
  std::string entry;
  int64_t threads = 0;
  /// Bytes of static shared memory; there is no dynamic shared memory.
  int64_t shared_bytes = 0;
  Expr blocks;
  int64_t thread_group_size = 1;
  /// Returns the CUDA grid size for a GPU of `multiprocessors` multiprocessors. Thread groups run
  /// blocks of the kernel IR in a grid-stride loop, each about as many as the others: one, or as
  /// many as keep the grid below the size that fills the GPU twice. So each thread computes once
  /// what its blocks share, such as the bias correction of Adam. Results do not depend on the grid
  /// size.
  int64_t grid_size(int64_t batch, int64_t multiprocessors) const;
};

/// A PTX module and the launches of its kernels. The arguments of every kernel are the addresses of
/// `buffers`, in order, then the batch size as an i64.
struct GpuProgram {
  std::string ptx;
  std::vector<kir::Buffer> buffers;
  std::vector<GpuLaunch> launches;  ///< one per kernel, in launch order
  int64_t max_batch = 0;            ///< maximum batch size: a larger batch overflows 32-bit indices
};

GpuLaunch launch_parameters(const kir::Kernel& kernel);

/// Compiles kernels to PTX for `arch` ("sm_90"). Throws UserError for an unsupported `arch`.
GpuProgram compile_ptx(std::span<const kir::Kernel> kernels, const std::string& arch);

/// Returns the CUDA block size for thread groups of `thread_group_size` threads.
int64_t threads_per_block(int64_t thread_group_size);
/// Returns the maximum batch size for which 32-bit indices can address every element of every
/// buffer.
int64_t max_batch(std::span<const kir::Buffer> buffers);

}  // namespace fluid
