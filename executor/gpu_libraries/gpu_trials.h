#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/gpu_driver/open_gpu.h"
#include "executor/gpu_libraries/choice_record.h"

namespace fluid {

inline constexpr int kMaxAlgorithms = 8;  ///< algorithms tried per task

/// Tries the library's algorithms for a task, and records why some failed. Throws when the GPU
/// itself failed.
class GpuTrials {
 public:
  /// A working algorithm.
  struct Way {
    GpuPlan gpu_plan;  ///< the plan, ready for capture
    GpuGraph once;     ///< graph that runs the task once
  };

  GpuTrials(const OpenGpu& gpu, const GpuTask& task) : gpu_(gpu), task_(task) {}

  /// The algorithms in the library's order of expected speed; empty after a failure.
  std::vector<FluidGpuChoice> ways(int64_t workspace);
  /// The plan for `choice`; empty when the library does not accept it.
  GpuPlan prepared(const FluidGpuChoice& choice);
  /// Runs the task once, which loads its code, and captures it. Returns nullopt when the library
  /// does not accept `choice` or fails.
  std::optional<Way> tried(const FluidGpuChoice& choice, const FluidGpuOperands& factors);
  /// The fastest of several timed rounds; nullopt after a failure.
  std::optional<float> milliseconds(const Way& way, const FluidGpuOperands& factors);

  const GpuTask& task() const { return task_; }
  /// Why an algorithm failed: the first failure, or the first for lack of memory; "" if none
  /// failed.
  const std::string& why() const { return why_; }
  /// An algorithm failed for lack of memory, so it may work later.
  bool lacked_memory() const { return lacked_memory_; }
  /// How long the failures hold. A rejection by the library holds in later runs too.
  DecisionScope lasts() const { return decision_scope_; }

 private:
  GpuGraph recorded(const GpuPlan& gpu_plan, const FluidGpuOperands& factors, int calls) const;
  float milliseconds(const GpuGraph& calls) const;
  bool works(const std::function<void()>& what);
  /// Records a failure for why(), lacked_memory() and lasts(). Waits for queued work.
  void note(FluidGpuResult result, const std::string& why);

  const OpenGpu& gpu_;
  const GpuTask& task_;
  std::string why_;
  bool lacked_memory_ = false;
  DecisionScope decision_scope_ = DecisionScope::later;
};

}  // namespace fluid
