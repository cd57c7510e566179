#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/gpu_driver/open_gpu.h"
#include "executor/gpu_libraries/algorithm_record.h"

namespace fluid {

inline constexpr int kMaxAlgorithms = 8;  ///< maximum number of algorithms tried per task

/// Runs and times the library's algorithms for a task, and records their failures. Throws when the
/// GPU itself fails.
class GpuTrials {
 public:
  /// An algorithm that has run the task without failure.
  struct Trial {
    GpuPlan gpu_plan;  ///< plan for the algorithm, ready for stream capture
    GpuGraph graph;    ///< CUDA graph that runs the task once
  };

  GpuTrials(const OpenGpu& gpu, const GpuTask& task) : gpu_(gpu), task_(task) {}

  /// Lists the library's algorithms in the order of its heuristics, fastest first; empty after a
  /// failure.
  std::vector<FluidGpuAlgorithm> algorithms(int64_t workspace);
  /// Creates the plan for `algorithm`. Returns an empty plan if the library rejects the algorithm
  /// or fails.
  GpuPlan create_plan(const FluidGpuAlgorithm& algorithm);
  /// Runs the task once, which loads the GPU code, then captures one execution as a CUDA graph.
  /// Returns nullopt if the library rejects `algorithm` or fails.
  std::optional<Trial> try_algorithm(const FluidGpuAlgorithm& algorithm,
                                     const FluidGpuOperands& operands);
  /// Times the task several times and returns the shortest time; nullopt after a failure.
  std::optional<float> measure_milliseconds(const Trial& trial, const FluidGpuOperands& operands);

  const GpuTask& task() const { return task_; }
  /// Message of the first failure; "" if there was no failure. An out-of-memory failure takes
  /// precedence over earlier failures of other kinds.
  const std::string& failure_message() const { return failure_message_; }
  /// Whether an algorithm ran out of memory. With more free memory, the algorithm may work.
  bool ran_out_of_memory() const { return ran_out_of_memory_; }
  /// Lifetime of the rejection recorded for a task without a working algorithm: persistent if the
  /// library rejected every algorithm, else process.
  EntryLifetime failure_lifetime() const { return failure_lifetime_; }

 private:
  GpuGraph capture_calls(const GpuPlan& gpu_plan, const FluidGpuOperands& operands,
                         int calls) const;
  float measure_milliseconds(const GpuGraph& graph) const;
  /// Runs `call`. If `call` throws an error of the library, records the failure and returns false.
  bool try_call(const std::function<void()>& call);
  /// Records a failure, then waits for queued work.
  void record_failure(FluidGpuResult result, const std::string& why);

  const OpenGpu& gpu_;
  const GpuTask& task_;
  std::string failure_message_;
  bool ran_out_of_memory_ = false;
  EntryLifetime failure_lifetime_ = EntryLifetime::persistent;
};

}  // namespace fluid
