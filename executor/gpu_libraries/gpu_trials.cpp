#include "executor/gpu_libraries/gpu_trials.h"

#include <algorithm>
#include <limits>

#include "executor/device/out_of_memory.h"

namespace fluid {
namespace {

constexpr int kCalls = 8;     ///< amortises event and launch overhead
constexpr float kLongMs = 1;  ///< a call this long needs no amortisation
constexpr int kRounds = 5;    ///< the fastest round counts

}  // namespace

std::vector<FluidGpuChoice> GpuTrials::ways(int64_t workspace) {
  std::vector<FluidGpuChoice> found;
  works([&] { found = gpu_.gpu.choices(task_, workspace, kMaxAlgorithms); });
  return found;
}

GpuPlan GpuTrials::prepared(const FluidGpuChoice& choice) {
  GpuPlan gpu_plan;
  const bool asked = works([&] { gpu_plan = gpu_.gpu.gpu_plan(task_, choice); });
  if (asked && !gpu_plan) note(fluid_gpu_misused, gpu_.gpu.table().error());
  return gpu_plan;
}

std::optional<GpuTrials::Way> GpuTrials::tried(const FluidGpuChoice& choice,
                                               const FluidGpuOperands& factors) {
  Way way{.gpu_plan = prepared(choice), .once = {}};
  const bool able = way.gpu_plan && works([&] {
                      gpu_.gpu.multiply(gpu_.stream, way.gpu_plan, factors);
                      way.once = recorded(way.gpu_plan, factors, 1);
                    });
  if (!able) return std::nullopt;
  gpu_.gpu.synchronize(gpu_.stream);
  return way;
}

bool GpuTrials::works(const std::function<void()>& what) {
  try {
    what();
    return true;
  } catch (const OutOfMemory& lack) {
    note(fluid_gpu_out_of_memory, lack.lack());
  } catch (const GpuError& failure) {
    note(failure.result(), failure.what());
  }
  return false;
}

/// Throws if the GPU itself failed, because synchronising fails then.
void GpuTrials::note(FluidGpuResult result, const std::string& why) {
  const bool lacks_memory = result == fluid_gpu_out_of_memory;
  if (why_.empty() || (lacks_memory && !lacked_memory_)) why_ = why;
  lacked_memory_ |= lacks_memory;
  if (result != fluid_gpu_misused) decision_scope_ = DecisionScope::here;
  gpu_.gpu.synchronize(gpu_.stream);
}

GpuGraph GpuTrials::recorded(const GpuPlan& gpu_plan, const FluidGpuOperands& factors,
                             int calls) const {
  return gpu_.gpu.captured(gpu_.stream, [&] {
    for (int call = 0; call < calls; ++call) {
      gpu_.gpu.multiply(gpu_.stream, gpu_plan, factors);
    }
  });
}

std::optional<float> GpuTrials::milliseconds(const Way& way, const FluidGpuOperands& factors) {
  float ms = 0;
  const bool timed = works([&] {
    ms = milliseconds(way.once);
    if (ms > kLongMs) return;
    ms = milliseconds(recorded(way.gpu_plan, factors, kCalls)) / kCalls;
  });
  return timed ? std::optional(ms) : std::nullopt;
}

/// The first launch is not timed: it keeps the GPU busy until the host has queued all rounds, so no
/// round waits for the host.
float GpuTrials::milliseconds(const GpuGraph& calls) const {
  const Gpu& gpu = gpu_.gpu;
  std::vector<GpuEvent> marks;
  for (int round = 0; round <= kRounds; ++round) {
    gpu.launch(calls, gpu_.stream);
    gpu.record(marks.emplace_back(gpu.event(fluid_gpu_times)), gpu_.stream);
  }
  gpu.synchronize(marks.back());
  float least = std::numeric_limits<float>::infinity();
  for (size_t end = 1; end < marks.size(); ++end) {
    least = std::min(least, gpu.milliseconds(marks[end - 1], marks[end]));
  }
  return least;
}

}  // namespace fluid
