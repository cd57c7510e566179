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
  int64_t assembler = 1;      ///< version of the assembler, whose output is PTX
  std::string name = "a host that stands in for a GPU";
  /// Largest products and convolutions that the libraries support.
  int64_t most_rows = std::numeric_limits<int64_t>::max();
  int64_t most_filters = std::numeric_limits<int64_t>::max();
  /// Largest products that the library can run. For larger ones, it fails only when it runs them.
  int64_t most_rows_computed = std::numeric_limits<int64_t>::max();
  FluidGpuResult rejection_result = fluid_gpu_invalid_usage;  ///< result for larger products
  bool split_k_is_fast = false;                               ///< whether split-K is faster
};

/// The functions of a GPU, run by the host that stands in for one in tests. Interprets PTX, one
/// thread at a time. Queued work runs late, or in any order that streams and events allow. Only
/// queued work can access the GPU's memory. Reports misuse that a GPU would not notice.
const FluidGpuTable& host_gpu_table();

/// Sets the properties of GPUs that are opened later. Forgets open objects and simulated failures.
void reset_host_gpu(const HostGpuOptions& options);

/// Like reset_host_gpu(), but keeps open objects and simulated failures.
void change_host_gpu(const HostGpuOptions& options);

/// Makes the call of function `name` after the next `calls` calls fail. A failed GPU stays failed.
/// "graph_create" is the part of `capture_end` after the capture.
void fail_host_gpu(const std::string& name, FluidGpuResult result, int calls = 0);

/// A kernel that runs all its blocks at once.
struct HostKernel {
  std::string name;
  std::function<void(const FluidGpuLaunch& launch)> run;
};

/// Returns text that `assemble` accepts for these kernels. `assemble` also accepts PTX and
/// interprets it (ptx_machine.h).
std::string host_gpu_text(std::vector<HostKernel> kernels);

/// Number of open objects, plus blocks that were freed while a graph used them. Must be 0 at the
/// end.
int host_gpu_objects();

/// Largest number of graphs that a GPU had at once.
size_t host_gpu_most_graphs();

/// Number of graphs that were launched before the previous graph of their GPU was complete.
int host_gpu_overlaps();

/// Number of bytes copied in any direction.
int64_t host_gpu_copied();

}  // namespace fluid::testing
