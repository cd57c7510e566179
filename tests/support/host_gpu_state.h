#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/host_gpu.h"
#include "tests/support/host_gpu_memory.h"

// Shared state of the functions of a GPU that the host stands in for, and the code that runs them.

struct FluidGpu {
  explicit FluidGpu(const fluid::testing::HostGpuOptions& options)
      : memory(options.memory), scheduler(options.pace, options.seed) {}

  fluid::testing::HostGpuMemory memory;
  fluid::testing::HostScheduler scheduler;
  int device = 0;
  std::vector<fluid::testing::HostStream*> streams;
  std::vector<const fluid::testing::HostFrontier*> graphs;  ///< all existing graphs
  fluid::testing::HostFrontier graph;                       ///< the work of the one launched last
  std::string failure;                                      ///< once it failed
};

struct FluidGpuStream : fluid::testing::HostStream {
  FluidGpu* gpu = nullptr;
};

namespace fluid::testing {

struct HostGpuState {
  struct ToFail {
    FluidGpuResult result;
    int calls;
  };

  HostGpuOptions options;
  std::map<std::string, ToFail> to_fail;
  std::vector<std::vector<HostKernel>> modules;  ///< modules of host_gpu_text()
  std::string error;
  int objects = 0;
  int overlaps = 0;  ///< graph launches that overlap the previous one
  size_t most_graphs = 0;
  int64_t copied = 0;  ///< bytes
};

HostGpuState& host_gpu_state();

/// Runs a function of the table. On a GPU that failed every one fails.
FluidGpuResult host_gpu_call(const char* name, FluidGpu* gpu, const std::function<void()>& call);

/// Returns the error of a call that misuses the GPU, and invalidates the capture.
HostError misused_by(FluidGpuStream* stream, const std::string& why);
/// Throws if a stream is capturing, because the call `what` invalidates the capture.
void check_not_capturing(FluidGpu* gpu, const char* what);

template <class T, class... Arguments>
void create(T** object, Arguments&&... arguments) {
  *object = new T{std::forward<Arguments>(arguments)...};
  ++host_gpu_state().objects;
}

template <class T>
void destroy(T* object) {
  delete object;
  --host_gpu_state().objects;
}

/// Fails the GPU if a graph still uses `block`. A real GPU would not notice the dangling pointer.
void check_not_captured(FluidGpu* gpu, const void* block);

/// `given`: see HostWork.
void queue(FluidGpuStream* stream, std::vector<const void*> given, std::function<void()> run);
/// Queues work on `data` that waits for other processes; see HostWork::others.
void queue_collective_work(FluidGpuStream* stream, std::span<std::byte> data,
                           std::function<void()> run, std::function<bool(const HostWork*)> others);
/// Throws where queued work touches memory that it may not.
void require(FluidGpu* gpu, const void* address, int64_t bytes);
void finish_host_work(FluidGpu* gpu);

}  // namespace fluid::testing
