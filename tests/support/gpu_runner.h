#pragma once

#include <memory>
#include <span>

#include "ops/kernel_ir.h"

namespace fluid::testing {

/// Runs kernels of GPUs on the first GPU there is (see executor/gpu/backend.h), each buffer in
/// memory of its own. One a process, as opening a GPU takes a second.
class GpuRunner {
 public:
  /// Throws DeviceError where there is no GPU.
  static GpuRunner& first_gpu();
  ~GpuRunner();

  /// Runs the passes in order. `buffers`, of the host, in the kernels' order of arguments, are
  /// copied to the GPU and back.
  void run(std::span<const kir::Kernel> passes, std::span<void* const> buffers, int64_t batch);

 private:
  GpuRunner();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluid::testing
