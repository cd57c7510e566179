#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "executor/gpu_driver/gpu.h"

namespace fluid {

/// Accounts for GPU memory that is not allocated by Gpu::allocate(): memory of the driver,
/// libraries, modules and graphs. Compares the free GPU memory before and after each setup step, so
/// concurrent allocations of other processes are counted too. Not thread-safe.
class GpuMemoryTracker {
 public:
  /// Attributes the GPU memory that is in use now to the CUDA context and other processes.
  explicit GpuMemoryTracker(const Gpu& gpu)
      : gpu_(gpu),
        total_bytes_(gpu.memory_info().second),
        initial_free_bytes_(gpu.memory_info().first) {}

  GpuMemoryTracker(const GpuMemoryTracker&) = delete;

  /// Runs a setup step, and adds the net GPU memory that the step allocates to the bytes of
  /// `owner`, such as "graphs". Memory from Gpu::allocate() is not counted.
  template <class Step>
  auto measure(const char* owner, Step&& step) const {
    const int64_t before = untracked_bytes();
    if constexpr (std::is_void_v<decltype(step())>) {
      step();
      bytes_by_owner_[owner] += untracked_bytes() - before;
    } else {
      auto result = step();
      bytes_by_owner_[owner] += untracked_bytes() - before;
      return result;
    }
  }

  /// Bytes of GPU memory by owner, such as "graphs", in descending order of bytes. Includes bytes
  /// without a known owner.
  std::vector<std::pair<std::string, int64_t>> bytes_by_owner() const;

 private:
  /// Bytes of GPU memory in use, minus the bytes in use at construction and the bytes from
  /// Gpu::allocate().
  int64_t untracked_bytes() const;

  const Gpu& gpu_;
  int64_t total_bytes_, initial_free_bytes_;
  mutable std::map<std::string, int64_t> bytes_by_owner_;
};

/// An open GPU and its two streams. All objects that own its memory, including output tensors,
/// share ownership of the OpenGpu.
struct OpenGpu {
  OpenGpu(const FluidGpuTable& table, int device)
      : gpu(table, device),
        memory_tracker(gpu),
        stream(gpu.create_stream()),
        fetch_stream(gpu.create_stream()) {}

  Gpu gpu;
  GpuMemoryTracker memory_tracker;
  GpuStream stream;        ///< compute stream, which runs the steps
  GpuStream fetch_stream;  ///< stream that copies outputs to the host while later steps run
};

}  // namespace fluid
