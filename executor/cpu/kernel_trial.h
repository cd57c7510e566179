#pragma once

#include <memory>
#include <vector>

#include "codegen/compiler.h"
#include "executor/cpu_libraries/library.h"
#include "executor/device/kernel_cache.h"
#include "ir/graph.h"
#include "passes/target.h"

namespace fluid {

/// A kernel that computes an op and its epilogue, to be timed on memory with random operands.
class KernelTrial {
 public:
  /// An op and its epilogue, with concrete shapes. Operands are floats or 8-bit integers.
  using Chain = std::vector<const ir::Op*>;

  /// Prepares the library kernel `kernel` for operands and results in the layouts that it requires.
  /// Throws DeviceError when the library fails.
  KernelTrial(const Chain& chain, const KernelCandidate& kernel, int threads);
  /// Prepares generated code.
  KernelTrial(const Chain& chain, KernelCache& kernels, Compiler& compiler, int threads);

  int64_t bytes() const { return bytes_; }  ///< bytes of memory that the kernel needs
  /// Binds the kernel to memory of at least bytes() bytes, aligned as an arena. Trials that do not
  /// run at the same time may share the memory. Throws DeviceError when the library fails.
  void bind(std::byte* memory);
  /// Runs the kernel. Returns the elapsed time in seconds. Throws DeviceError when the library
  /// fails.
  double run() const;

 private:
  void place_buffers(int64_t workspace);
  void run_generated() const;

  int threads_;
  std::unique_ptr<ir::Program> program_;
  std::vector<int64_t> offsets_;  ///< offsets of the operands, the results and the workspace
  int64_t bytes_ = 0;
  std::vector<void*> buffers_;  ///< addresses that the kernel gets
  // A library kernel:
  LibraryBinder bind_library_;
  LibraryCall library_;
  // A generated kernel:
  const kir::Kernel* kernel_ = nullptr;
  CompiledKernel compiled_;
  std::vector<int64_t> constants_;
};

/// Runs each trial once, as a warm-up. Then runs the trials in turns for about 0.3 s, those within
/// a factor of 2 of the fastest, and for another 0.3 s, those within 15 %. Returns the shortest
/// time of each trial in seconds; infinity for a kernel that fails.
std::vector<double> shortest_seconds(const std::vector<std::unique_ptr<KernelTrial>>& trials);

}  // namespace fluid
