#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "codegen/compiler.h"
#include "executor/device/kernel_cache.h"
#include "executor/host/arena.h"
#include "ir/graph.h"
#include "passes/target.h"

namespace fluid {

/// A kernel that computes an op and its epilogue, ready to run on random operands in memory of its
/// own.
class KernelTrial {
 public:
  /// An op and its epilogue, with float operands and concrete shapes.
  using Chain = std::vector<const ir::Op*>;

  /// Prepares the library kernel `kernel` for operands and results in the layouts that it requires.
  /// Throws DeviceError when the library fails, and OutOfMemory.
  KernelTrial(const Chain& chain, const KernelCandidate& kernel, int threads);
  /// Prepares generated code. Throws OutOfMemory.
  KernelTrial(const Chain& chain, KernelCache& kernels, Compiler& compiler, int threads);

  /// Runs the kernel. Returns the elapsed time in seconds.
  double run() const;

 private:
  /// Allocates the buffers of the fused op and `workspace` bytes. Returns the addresses of the
  /// operands, the results and the workspace.
  std::vector<void*> allocate(int64_t workspace);

  std::unique_ptr<ir::Program> program_;
  Arena memory_;
  std::function<void()> kernel_;
};

/// Runs each trial once, as a warm-up. Then runs the trials in turns for about 0.3 s, those within
/// a factor of 2 of the fastest, and for another 0.3 s, those within 15 %. Returns the shortest
/// time of each trial in seconds.
std::vector<double> shortest_seconds(const std::vector<std::unique_ptr<KernelTrial>>& trials);

}  // namespace fluid
