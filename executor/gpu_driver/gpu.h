#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/gpu_driver/backend_table.h"
#include "executor/gpu_driver/gpu_task.h"
#include "ir/error.h"

namespace fluid {

/// Exception for an error of a function of FluidGpuTable. Out-of-memory errors throw OutOfMemory
/// instead.
class GpuError : public DeviceError {
 public:
  GpuError(FluidGpuResult result, const std::string& what) : DeviceError(what), result_(result) {}
  FluidGpuResult result() const { return result_; }

 private:
  FluidGpuResult result_;
};

/// Throws OutOfMemory or GpuError unless `result` is fluid_gpu_ok. `gpu`: the GPU of the call, or
/// null if no GPU was open.
void check_gpu(const FluidGpuTable& table, FluidGpuResult result, FluidGpu* gpu = nullptr);

/// Advice for an out-of-memory message: how much GPU memory is free, and how to use less GPU
/// memory.
std::string out_of_memory_advice(const FluidGpuTable& table, FluidGpu* gpu);

/// Owning handle of an object that a function of FluidGpuTable created. `kRelease` destroys the
/// object.
template <class T, FluidGpuResult (*FluidGpuTable::*kRelease)(T*)>
class GpuHandle {
 public:
  GpuHandle() = default;
  GpuHandle(const FluidGpuTable& table, T* object) : table_(&table), object_(object) {}
  ~GpuHandle() {
    if (object_ != nullptr) (table_->*kRelease)(object_);
  }
  GpuHandle(GpuHandle&& other) noexcept { swap(other); }
  GpuHandle& operator=(GpuHandle&& other) noexcept {
    GpuHandle(std::move(other)).swap(*this);
    return *this;
  }

  T* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  void swap(GpuHandle& other) {
    std::swap(table_, other.table_);
    std::swap(object_, other.object_);
  }

  const FluidGpuTable* table_ = nullptr;
  T* object_ = nullptr;
};

using GpuStream = GpuHandle<FluidGpuStream, &FluidGpuTable::stream_destroy>;
using GpuEvent = GpuHandle<FluidGpuEvent, &FluidGpuTable::event_destroy>;
using GpuGraph = GpuHandle<FluidGpuGraph, &FluidGpuTable::graph_destroy>;
using GpuModule = GpuHandle<FluidGpuModule, &FluidGpuTable::module_unload>;
using GpuPlan = GpuHandle<FluidGpuPlan, &FluidGpuTable::plan_destroy>;
using GpuCommunicator = GpuHandle<FluidGpuCommunicator, &FluidGpuTable::communicator_destroy>;

/// Owns GPU memory or pinned host memory.
class GpuMemory {
 public:
  enum class Location : uint8_t { gpu, host };
  GpuMemory() = default;
  /// Adds `bytes` to the counter `allocated_bytes`; the destructor subtracts them.
  GpuMemory(const FluidGpuTable& table, FluidGpu* gpu, Location location, int64_t bytes,
            int64_t* allocated_bytes);
  ~GpuMemory();
  GpuMemory(GpuMemory&& other) noexcept { swap(other); }
  GpuMemory& operator=(GpuMemory&& other) noexcept {
    GpuMemory(std::move(other)).swap(*this);
    return *this;
  }

  /// Address of the memory. The host must not dereference an address in GPU memory.
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  void swap(GpuMemory& other);

  const FluidGpuTable* table_ = nullptr;
  FluidGpu* gpu_ = nullptr;
  Location location_ = Location::gpu;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  int64_t* allocated_bytes_ = nullptr;
};

/// An open GPU. Its streams, events, memory and plans must be destroyed before the Gpu. Functions
/// throw DeviceError on errors, including failures of work that was queued earlier.
class Gpu {
 public:
  Gpu(const FluidGpuTable& table, int device);

  GpuMemory allocate(int64_t bytes) const {
    return {table_, gpu_.get(), GpuMemory::Location::gpu, bytes, &allocated_bytes_->gpu};
  }
  GpuMemory allocate_host(int64_t bytes) const {
    return {table_, gpu_.get(), GpuMemory::Location::host, bytes, &allocated_bytes_->host};
  }
  /// Bytes currently allocated by allocate() for Location::gpu, or by allocate_host() for
  /// Location::host.
  int64_t allocated_bytes(GpuMemory::Location location) const {
    return location == GpuMemory::Location::gpu ? allocated_bytes_->gpu : allocated_bytes_->host;
  }
  int64_t multiprocessors() const { return multiprocessors_; }
  /// GPU memory in bytes: {free, total}.
  std::pair<int64_t, int64_t> memory_info() const;

  GpuStream create_stream() const;
  GpuEvent create_event(FluidGpuEventUse use = fluid_gpu_event_order) const;
  /// Compiles PTX to a cubin for this GPU.
  std::string assemble(std::string_view ptx) const;
  GpuModule load_module(std::string_view cubin) const;
  FluidGpuKernel* kernel(const GpuModule& module, const char* name) const;

  void copy(const GpuStream& stream, void* to, const void* from, int64_t bytes) const;
  void fill(const GpuStream& stream, void* to, uint8_t value, int64_t bytes) const;
  /// Queues a kernel launch. `arguments`: the host address of each argument; each argument has 8
  /// bytes.
  void launch(const GpuStream& stream, FluidGpuKernel* kernel, int64_t grid, int64_t block,
              std::span<void* const> arguments) const;
  void synchronize(const GpuStream& stream) const;

  void record(const GpuEvent& event, const GpuStream& stream) const;
  void wait(const GpuStream& stream, const GpuEvent& event) const;
  bool is_done(const GpuEvent& event) const;
  void synchronize(const GpuEvent& event) const;
  float milliseconds(const GpuEvent& from, const GpuEvent& to) const;

  void begin_capture(const GpuStream& stream) const;
  GpuGraph end_capture(const GpuStream& stream) const;
  /// Calls `queue`, and captures the work that it queues on `stream` as a CUDA graph. If `queue`
  /// throws, discards the capture and rethrows.
  GpuGraph capture(const GpuStream& stream, const std::function<void()>& queue) const;
  void launch(const GpuGraph& graph, const GpuStream& stream) const;

  /// Lists at most `max_count` algorithms for a task in the order of the library's heuristics,
  /// fastest first. Each algorithm needs at most `workspace` bytes of workspace.
  std::vector<FluidGpuAlgorithm> algorithms(const GpuTask& task, int64_t workspace,
                                            int max_count) const;
  /// Creates a plan for the task. Returns an empty plan when `algorithm` cannot compute the task.
  GpuPlan create_plan(const GpuTask& task, const FluidGpuAlgorithm& algorithm) const;
  void execute_plan(const GpuStream& stream, const GpuPlan& gpu_plan,
                    const FluidGpuOperands& operands) const;

  const FluidGpuTable& table() const { return table_; }
  FluidGpu* get() const { return gpu_.get(); }

 private:
  struct AllocatedBytes {
    int64_t gpu = 0, host = 0;  ///< bytes of GPU memory and of pinned host memory
  };
  void check(FluidGpuResult result) const { check_gpu(table_, result, gpu_.get()); }

  const FluidGpuTable& table_;
  GpuHandle<FluidGpu, &FluidGpuTable::close> gpu_;
  int64_t multiprocessors_ = 0;
  std::unique_ptr<AllocatedBytes> allocated_bytes_ = std::make_unique<AllocatedBytes>();
};

}  // namespace fluid
