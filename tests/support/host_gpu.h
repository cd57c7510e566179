#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "executor/gpu_driver/backend_table.h"
#include "tests/support/host_gpu_work.h"

namespace fluid::testing {

struct HostGpuOptions {
  HostPace pace = HostPace::late;
  uint64_t seed = 0;  ///< seed of the order of unordered work
  int64_t memory = int64_t{1} << 30;
  int devices = 1;
  int first = 0;  ///< index of the first device on the machine, which other processes may see too
  int64_t object_bytes = 0;   ///< GPU memory that each open object takes
  float work_ms = 1.0F / 64;  ///< time that each piece of work takes on the GPU's clock
  int64_t assembler = 1;      ///< version; its code is PTX, and no GPU's is kept as such
  std::string name = "a host that stands in for a GPU";
  /// Largest products and convolutions that the libraries support.
  int64_t most_rows = std::numeric_limits<int64_t>::max();
  int64_t most_filters = std::numeric_limits<int64_t>::max();
  /// Largest products that the library can run. For larger ones, it fails only when it runs them.
  int64_t most_rows_computed = std::numeric_limits<int64_t>::max();
  FluidGpuResult rejection_result = fluid_gpu_invalid_usage;  ///< result for larger products
  bool split_k_is_fast = false;                               ///< whether split-K is faster
};

/// The functions of a GPU, run by the host. It stands in for one in tests: PTX is read and its
/// threads run one at a time; work runs late, or in any order that streams and events allow, and
/// the GPU's memory cannot be touched but by work that was queued. Misuse that a GPU does not
/// notice fails here.
const FluidGpuTable& host_gpu_table();

/// Sets what GPUs that are opened from now on are like, and takes back all that was left open or
/// told to fail.
void reset_host_gpu(const HostGpuOptions& options);

/// Leaves what is open, and takes nothing back.
void change_host_gpu(const HostGpuOptions& options);

/// Lets the call of the table's function `name` after the next `calls` fail. A failed GPU stays so.
/// "graph_create" is what `capture_end` does when the capture is over.
void fail_host_gpu(const std::string& name, FluidGpuResult result, int calls = 0);

/// A kernel's work, all groups at once.
struct HostKernel {
  std::string name;
  std::function<void(const FluidGpuLaunch& launch)> run;
};

/// Returns text that `assemble` accepts for these kernels. `assemble` also accepts PTX and
/// interprets it (ptx_machine.h).
std::string host_gpu_text(std::vector<HostKernel> kernels);

/// Objects that are open, and memory that came back too early for a graph: none should be left at
/// the end.
int host_gpu_objects();

/// The most graphs that a GPU ever had at once.
size_t host_gpu_most_graphs();

/// Graphs that were launched before the one launched last on their GPU was done.
int host_gpu_overlaps();

/// Bytes that were copied, whence and where to ever.
int64_t host_gpu_copied();

}  // namespace fluid::testing
