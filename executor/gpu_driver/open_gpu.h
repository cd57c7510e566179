#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "executor/gpu_driver/gpu.h"

namespace fluid {

/// Attributes the GPU memory that Fluid does not allocate itself: memory of the driver, libraries,
/// code and graphs. It measures free memory before and after each setup step. Allocations that
/// other processes make meanwhile are counted too. Not thread-safe.
class GpuLedger {
 public:
  /// Attributes the memory in use now to the context or other processes.
  explicit GpuLedger(const Gpu& gpu)
      : gpu_(gpu), total_(gpu.memory_info().second), free_at_first_(gpu.memory_info().first) {}

  GpuLedger(const GpuLedger&) = delete;

  /// Runs a setup step and attributes its net memory use to `owner`. Memory that the step allocates
  /// by Gpu::allocate() is not counted.
  template <class Step>
  auto measured(const char* owner, Step&& step) const {
    const int64_t before = hidden();
    if constexpr (std::is_void_v<decltype(step())>) {
      step();
      taken_[owner] += hidden() - before;
    } else {
      auto result = step();
      taken_[owner] += hidden() - before;
      return result;
    }
  }

  /// All owners with their bytes in descending order, and the remainder.
  std::vector<std::pair<std::string, int64_t>> owners() const;

 private:
  /// Bytes taken since construction, without memory from Gpu::allocate().
  int64_t hidden() const;

  const Gpu& gpu_;
  int64_t total_, free_at_first_;
  mutable std::map<std::string, int64_t> taken_;
};

/// An open GPU, the steps' stream, and a stream for fetches during later steps. Shared by all
/// owners of its memory, including outputs.
struct OpenGpu {
  OpenGpu(const FluidGpuTable& table, int device)
      : gpu(table, device), ledger(gpu), stream(gpu.stream()), fetches(gpu.stream()) {}

  Gpu gpu;
  GpuLedger ledger;
  GpuStream stream, fetches;
};

}  // namespace fluid
