#pragma once

#include <memory>
#include <span>
#include <vector>

#include "codegen/kernel_ir.h"

namespace fluid::testing {

/// Runs kernels of GPUs on the host: the code that becomes PTX, compiled for the host instead,
/// every thread with a stack of its own. Threads run one at a time, up to where they wait for
/// others.
class GpuEmulator {
 public:
  GpuEmulator();
  ~GpuEmulator();
  /// Runs the passes in order. `buffers` in the kernels' order of arguments. `groups` at most, so
  /// that teams stride; `backwards`: the last thread first. Throws InternalError when threads wait
  /// for others that never come.
  void run(std::span<const kir::Kernel> passes, std::span<void* const> buffers, int64_t batch,
           int64_t groups = 3, bool backwards = false);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluid::testing
