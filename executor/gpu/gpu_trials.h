#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/gpu/choice_record.h"
#include "executor/gpu/open_gpu.h"

namespace fluid {

inline constexpr int kMostWays = 8;  ///< of a task that are tried

/// Tries the library's ways to compute a task, and remembers why some failed. That the GPU itself
/// failed is thrown.
class GpuTrials {
 public:
  /// A way that works.
  struct Way {
    GpuMultiplier multiplier;  ///< captures may have it
    GpuGraph once;             ///< the task, computed once
  };

  GpuTrials(const OpenGpu& gpu, const GpuTask& task) : gpu_(gpu), task_(task) {}

  /// Choices, those first that the library takes for the fastest; none where that fails.
  std::vector<FluidGpuChoice> ways(int64_t workspace);
  /// Empty where the library does not take the choice.
  GpuMultiplier prepared(const FluidGpuChoice& choice);
  /// Computes the task once, which loads the way's code, and records it, as steps do. Empty where
  /// the library does not take the choice, or then finds that it cannot.
  std::optional<Way> tried(const FluidGpuChoice& choice, const FluidGpuFactors& factors);
  /// What the task takes, of the fastest of several rounds; empty where that fails.
  std::optional<float> milliseconds(const Way& way, const FluidGpuFactors& factors);

  const GpuTask& task() const { return task_; }
  /// Of the first way that failed, or that did for want of memory; "" where none did.
  const std::string& why() const { return why_; }
  /// One failed for want of memory: it may work another time.
  bool lacked_memory() const { return lacked_memory_; }
  /// How long it holds that ways failed: of what the library refused, for who comes later, too.
  Lasts lasts() const { return lasts_; }

 private:
  GpuGraph recorded(const GpuMultiplier& multiplier, const FluidGpuFactors& factors,
                    int calls) const;
  float milliseconds(const GpuGraph& calls) const;
  bool works(const std::function<void()>& what);
  void note(FluidGpuResult result, const std::string& why);

  const OpenGpu& gpu_;
  const GpuTask& task_;
  std::string why_;
  bool lacked_memory_ = false;
  Lasts lasts_ = Lasts::later;
};

}  // namespace fluid
