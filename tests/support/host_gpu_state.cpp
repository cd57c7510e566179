#include "tests/support/host_gpu_state.h"

#include <stdexcept>

namespace fluid::testing {
namespace {

void fail_if_requested(const std::string& name, FluidGpu* gpu) {
  HostGpuState& state = host_gpu_state();
  const auto found = state.to_fail.find(name);
  if (found == state.to_fail.end() || found->second.calls-- > 0) return;
  const FluidGpuResult result = found->second.result;
  state.to_fail.erase(found);
  if (gpu != nullptr && result == fluid_gpu_failed) gpu->failure = name + " was told to fail";
  throw HostError{result, name + " was told to fail"};
}

}  // namespace

HostGpuState& host_gpu_state() {
  static HostGpuState state;
  return state;
}

void reset_host_gpu(const HostGpuOptions& options) { host_gpu_state() = {.options = options}; }

void change_host_gpu(const HostGpuOptions& options) { host_gpu_state().options = options; }

void fail_host_gpu(const std::string& name, FluidGpuResult result, int calls) {
  host_gpu_state().to_fail[name] = {result, calls};
}

int host_gpu_objects() { return host_gpu_state().objects; }

size_t host_gpu_most_graphs() { return host_gpu_state().most_graphs; }

int host_gpu_overlaps() { return host_gpu_state().overlaps; }

int64_t host_gpu_copied() { return host_gpu_state().copied; }

FluidGpuResult host_gpu_call(const char* name, FluidGpu* gpu, const std::function<void()>& call) {
  try {
    fail_if_requested(name, gpu);
    if (gpu != nullptr && !gpu->failure.empty()) throw HostError{fluid_gpu_failed, gpu->failure};
    if (gpu != nullptr) gpu->scheduler.pass();
    call();
    return fluid_gpu_ok;
  } catch (const HostError& refusal) {
    host_gpu_state().error = refusal.why;
    return refusal.result;
  } catch (const std::exception& e) {
    host_gpu_state().error = std::string("queued work failed: ") + e.what();
    if (gpu != nullptr) gpu->failure = host_gpu_state().error;
    return fluid_gpu_failed;
  }
}

HostError misused_by(FluidGpuStream* stream, const std::string& why) {
  if (stream->capture) stream->capture->lost = true;
  return misused(why);
}

void check_not_capturing(FluidGpu* gpu, const char* what) {
  for (HostStream* stream : gpu->streams) {
    if (!stream->capture) continue;
    stream->capture->lost = true;
    throw misused(std::string(what) + " while a stream is recorded");
  }
}

void check_not_captured(FluidGpu* gpu, const void* block) {
  for (const HostFrontier* graph : gpu->graphs) {
    for (const auto& work : *graph) {
      for (const void* address : work->given) {
        if (!gpu->memory.is_within(address, block)) continue;
        ++host_gpu_state().objects;  // it is not given back
        gpu->failure = "memory is returned that a graph refers to";
        throw HostError{fluid_gpu_failed, gpu->failure};
      }
    }
  }
}

void queue(FluidGpuStream* stream, std::vector<const void*> given, std::function<void()> run) {
  FluidGpu* gpu = stream->gpu;
  const auto opened = [gpu, run = std::move(run)] {
    const HostGpuMemory::Opened open(gpu->memory);
    run();
  };
  gpu->scheduler.add(*stream, {.run = opened, .given = std::move(given)});
}

void queue_collective_work(FluidGpuStream* stream, std::span<std::byte> data,
                           std::function<void()> run, std::function<bool(const HostWork*)> others) {
  FluidGpu* gpu = stream->gpu;
  const auto reach = [gpu, data] {
    require(gpu, data.data(), static_cast<int64_t>(data.size()));
    return HostGpuMemory::Opened(gpu->memory);
  };
  gpu->scheduler.add(*stream, {.run =
                                   [reach, run = std::move(run)] {
                                     const HostGpuMemory::Opened opened = reach();
                                     run();
                                   },
                               .given = {data.data()},
                               .others =
                                   [reach, others = std::move(others)](const HostWork* self) {
                                     const HostGpuMemory::Opened opened = reach();
                                     return others(self);
                                   }});
}

void require(FluidGpu* gpu, const void* address, int64_t bytes) {
  if (gpu->memory.contains(address, bytes)) return;
  throw std::runtime_error("memory that was never given, or was returned, is touched");
}

void finish_host_work(FluidGpu* gpu) {
  if (gpu->failure.empty()) gpu->scheduler.run_all();
}

}  // namespace fluid::testing
