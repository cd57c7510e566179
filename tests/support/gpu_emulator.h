#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ops/kernel_ir.h"

namespace fluid::testing {

/// Runs kernels of GPUs on the host, by their PTX (see ptx_machine.h).
class GpuEmulator {
 public:
  explicit GpuEmulator(std::string architecture = "sm_90");
  ~GpuEmulator();
  /// Runs the passes in order. `buffers` in the kernels' order of arguments. `groups` at most, so
  /// that thread groups stride; `backwards`: the last thread first. Throws InternalError when a
  /// buffer's end is passed, threads wait for others that never come, or the result depends on
  /// their order.
  void run(std::span<const kir::Kernel> passes, std::span<void* const> buffers, int64_t batch,
           int64_t groups = 3, bool backwards = false);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluid::testing
