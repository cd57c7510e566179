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

/// An error returned by a function of the table, except out-of-memory, which is OutOfMemory.
class GpuError : public DeviceError {
 public:
  GpuError(FluidGpuResult result, const std::string& what) : DeviceError(what), result_(result) {}
  FluidGpuResult result() const { return result_; }

 private:
  FluidGpuResult result_;
};

/// Throws OutOfMemory or GpuError unless `result` is ok. `gpu`: the GPU of the call; null when none
/// was open.
void check_gpu(const FluidGpuTable& table, FluidGpuResult result, FluidGpu* gpu = nullptr);

/// Advice for an out-of-memory message: how much memory is free, and what to do.
std::string memory_advice(const FluidGpuTable& table, FluidGpu* gpu);

/// Owns an object of the table and releases it.
template <class T, FluidGpuResult (*FluidGpuTable::*kRelease)(T*)>
class GpuOwned {
 public:
  GpuOwned() = default;
  GpuOwned(const FluidGpuTable& table, T* object) : table_(&table), object_(object) {}
  ~GpuOwned() {
    if (object_ != nullptr) (table_->*kRelease)(object_);
  }
  GpuOwned(GpuOwned&& other) noexcept { swap(other); }
  GpuOwned& operator=(GpuOwned&& other) noexcept {
    GpuOwned(std::move(other)).swap(*this);
    return *this;
  }

  T* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  void swap(GpuOwned& other) {
    std::swap(table_, other.table_);
    std::swap(object_, other.object_);
  }

  const FluidGpuTable* table_ = nullptr;
  T* object_ = nullptr;
};

using GpuStream = GpuOwned<FluidGpuStream, &FluidGpuTable::stream_destroy>;
using GpuEvent = GpuOwned<FluidGpuEvent, &FluidGpuTable::event_destroy>;
using GpuGraph = GpuOwned<FluidGpuGraph, &FluidGpuTable::graph_destroy>;
using GpuModule = GpuOwned<FluidGpuModule, &FluidGpuTable::module_unload>;
using GpuPlan = GpuOwned<FluidGpuPlan, &FluidGpuTable::plan_destroy>;
using GpuCommunicator = GpuOwned<FluidGpuCommunicator, &FluidGpuTable::communicator_destroy>;

/// Owns GPU memory or pinned host memory.
class GpuMemory {
 public:
  enum class Where : uint8_t { gpu, host };
  GpuMemory() = default;
  /// `held`: counter of allocated bytes, updated by this object.
  GpuMemory(const FluidGpuTable& table, FluidGpu* gpu, Where where, int64_t bytes, int64_t* held);
  ~GpuMemory();
  GpuMemory(GpuMemory&& other) noexcept { swap(other); }
  GpuMemory& operator=(GpuMemory&& other) noexcept {
    GpuMemory(std::move(other)).swap(*this);
    return *this;
  }

  /// The host must not dereference an address in GPU memory.
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  void swap(GpuMemory& other);

  const FluidGpuTable* table_ = nullptr;
  FluidGpu* gpu_ = nullptr;
  Where where_ = Where::gpu;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  int64_t* held_ = nullptr;
};

/// An open GPU. Objects created by it must be destroyed before it. Errors are thrown as
/// DeviceError; a call that queues work may throw the error of earlier work.
class Gpu {
 public:
  Gpu(const FluidGpuTable& table, int device);

  GpuMemory allocate(int64_t bytes) const {
    return {table_, gpu_.get(), GpuMemory::Where::gpu, bytes, &held_->gpu};
  }
  GpuMemory allocate_host(int64_t bytes) const {
    return {table_, gpu_.get(), GpuMemory::Where::host, bytes, &held_->host};
  }
  /// Bytes currently allocated through this object.
  int64_t held(GpuMemory::Where where) const {
    return where == GpuMemory::Where::gpu ? held_->gpu : held_->host;
  }
  /// Free bytes and total bytes.
  std::pair<int64_t, int64_t> memory_info() const;

  GpuStream stream() const;
  GpuEvent event(FluidGpuEventUse use = fluid_gpu_orders) const;
  /// Compiles the code generator's output to machine code for this GPU.
  std::string assemble(std::string_view text) const;
  GpuModule module(std::string_view machine_code) const;
  FluidGpuKernel* kernel(const GpuModule& module, const char* name) const;

  void copy(const GpuStream& stream, void* to, const void* from, int64_t bytes) const;
  void fill(const GpuStream& stream, void* to, uint8_t value, int64_t bytes) const;
  /// `arguments`: the address of each argument; every argument has 8 bytes.
  void launch(const GpuStream& stream, FluidGpuKernel* kernel, int64_t groups, int64_t threads,
              std::span<void* const> arguments) const;
  void synchronize(const GpuStream& stream) const;

  void record(const GpuEvent& event, const GpuStream& stream) const;
  void wait(const GpuStream& stream, const GpuEvent& event) const;
  bool is_done(const GpuEvent& event) const;
  void synchronize(const GpuEvent& event) const;
  float milliseconds(const GpuEvent& from, const GpuEvent& to) const;

  void begin_capture(const GpuStream& stream) const;
  GpuGraph end_capture(const GpuStream& stream) const;
  /// Captures the work that `queue` queues. If `queue` throws, the capture is discarded.
  GpuGraph captured(const GpuStream& stream, const std::function<void()>& queue) const;
  void launch(const GpuGraph& graph, const GpuStream& stream) const;

  /// At most `most` algorithms for a task, in the library's order of expected speed.
  std::vector<FluidGpuChoice> choices(const GpuTask& task, int64_t workspace, int most) const;
  /// A plan for the task; empty when `choice` does not fit the task.
  GpuPlan gpu_plan(const GpuTask& task, const FluidGpuChoice& choice) const;
  void multiply(const GpuStream& stream, const GpuPlan& gpu_plan,
                const FluidGpuOperands& factors) const;

  const FluidGpuTable& table() const { return table_; }
  FluidGpu* get() const { return gpu_.get(); }

 private:
  struct Held {
    int64_t gpu = 0, host = 0;
  };
  void check(FluidGpuResult result) const { check_gpu(table_, result, gpu_.get()); }

  const FluidGpuTable& table_;
  GpuOwned<FluidGpu, &FluidGpuTable::close> gpu_;
  std::unique_ptr<Held> held_ = std::make_unique<Held>();
};

}  // namespace fluid
