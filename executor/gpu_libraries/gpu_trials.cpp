#include "executor/gpu_libraries/gpu_trials.h"

#include <algorithm>
#include <limits>

#include "executor/device/out_of_memory.h"

namespace fluid {
namespace {

/// Task executions per timed graph, to amortise event and launch overhead.
constexpr int kCallsPerTiming = 8;
/// Tasks that take longer than this (in ms) are timed one execution per graph.
constexpr float kLongMs = 1;
constexpr int kRounds = 5;  ///< number of timed graph launches; the shortest time is used

}  // namespace

std::vector<FluidGpuAlgorithm> GpuTrials::algorithms(int64_t workspace) {
  std::vector<FluidGpuAlgorithm> found;
  try_call([&] { found = gpu_.gpu.algorithms(task_, workspace, kMaxAlgorithms); });
  return found;
}

GpuPlan GpuTrials::create_plan(const FluidGpuAlgorithm& algorithm) {
  GpuPlan gpu_plan;
  const bool asked = try_call([&] { gpu_plan = gpu_.gpu.create_plan(task_, algorithm); });
  if (asked && !gpu_plan) record_failure(fluid_gpu_invalid_usage, gpu_.gpu.table().error());
  return gpu_plan;
}

std::optional<GpuTrials::Trial> GpuTrials::try_algorithm(const FluidGpuAlgorithm& algorithm,
                                                         const FluidGpuOperands& operands) {
  Trial trial{.gpu_plan = create_plan(algorithm), .graph = {}};
  const bool able = trial.gpu_plan && try_call([&] {
                      gpu_.gpu.execute_plan(gpu_.stream, trial.gpu_plan, operands);
                      trial.graph = capture_calls(trial.gpu_plan, operands, 1);
                    });
  if (!able) return std::nullopt;
  gpu_.gpu.synchronize(gpu_.stream);
  return trial;
}

bool GpuTrials::try_call(const std::function<void()>& call) {
  try {
    call();
    return true;
  } catch (const OutOfMemory& error) {
    record_failure(fluid_gpu_out_of_memory, error.failed_allocation());
  } catch (const GpuError& error) {
    record_failure(error.result(), error.what());
  }
  return false;
}

/// If the GPU itself failed, synchronize() throws.
void GpuTrials::record_failure(FluidGpuResult result, const std::string& why) {
  const bool lacks_memory = result == fluid_gpu_out_of_memory;
  if (failure_message_.empty() || (lacks_memory && !ran_out_of_memory_)) failure_message_ = why;
  ran_out_of_memory_ |= lacks_memory;
  if (result != fluid_gpu_invalid_usage) failure_lifetime_ = EntryLifetime::process;
  gpu_.gpu.synchronize(gpu_.stream);
}

GpuGraph GpuTrials::capture_calls(const GpuPlan& gpu_plan, const FluidGpuOperands& operands,
                                  int calls) const {
  return gpu_.gpu.capture(gpu_.stream, [&] {
    for (int call = 0; call < calls; ++call) {
      gpu_.gpu.execute_plan(gpu_.stream, gpu_plan, operands);
    }
  });
}

std::optional<float> GpuTrials::measure_milliseconds(const Trial& trial,
                                                     const FluidGpuOperands& operands) {
  float ms = 0;
  const bool timed = try_call([&] {
    ms = measure_milliseconds(trial.graph);
    if (ms > kLongMs) return;
    ms = measure_milliseconds(capture_calls(trial.gpu_plan, operands, kCallsPerTiming)) /
         kCallsPerTiming;
  });
  return timed ? std::optional(ms) : std::nullopt;
}

/// Times all launches but the first. The first launch keeps the GPU busy while the host queues the
/// timed launches, so that the timed launches do not wait for the host.
float GpuTrials::measure_milliseconds(const GpuGraph& graph) const {
  const Gpu& gpu = gpu_.gpu;
  std::vector<GpuEvent> events;
  for (int round = 0; round <= kRounds; ++round) {
    gpu.launch(graph, gpu_.stream);
    gpu.record(events.emplace_back(gpu.create_event(fluid_gpu_event_timing)), gpu_.stream);
  }
  gpu.synchronize(events.back());
  float least = std::numeric_limits<float>::infinity();
  for (size_t end = 1; end < events.size(); ++end) {
    least = std::min(least, gpu.milliseconds(events[end - 1], events[end]));
  }
  return least;
}

}  // namespace fluid
