#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "executor/options/executor_options.h"
#include "executor/options/place.h"
#include "frontend/program.h"
#include "passes/options.h"

namespace fluid {

/// Measured cost of a training step.
struct StepCost {
  double ms = 0;  ///< median time of several steps; infinite if the step does not fit in memory
  int64_t arena_bytes = 0;  ///< size of the arena
  bool operator==(const StepCost&) const = default;
};

using StepCosts = std::array<StepCost, 3>;  ///< indexed by Precision

/// The chosen training precision, and the measurements behind the choice.
struct AmpChoice {
  Precision precision = Precision::f32;
  DType dtype = DType::bf16;  ///< half-precision dtype of o1 and o2
  StepCosts costs = {};       ///< measurements; zeros if nothing was measured
  bool cached = false;        ///< whether the choice comes from the cache

  bool measured() const { return costs.front().ms > 0; }
  /// Summary, for example "bf16 o1, the fastest: f32 20.3 ms a step in 30.20 MiB, o1 12.1 ms in
  /// 20.10 MiB, ...".
  std::string text() const;
};

/// Keeps the precisions whose step time is within 5 % of the fastest. Of the remaining precisions,
/// keeps those whose memory is within 5 % of the smallest. Returns the first remaining precision in
/// the order f32, o1, o2.
Precision choose_precision(const StepCosts& costs);

/// Chooses the precision by timing training steps of `options.batch` samples in f32, o1 and o2,
/// each in its own session. Returns the cached result if there is one. Otherwise caches the result
/// in `options.cache_dir`, keyed by program, options, place and library versions. Throws as
/// Executor does if no precision fits in memory.
AmpChoice choose_amp(const Program& program, Place place, const ExecutorOptions& options);

/// Returns the cached result of choose_amp(); nullopt if there is none.
std::optional<AmpChoice> cached_amp_choice(const Program& program, Place place,
                                           const ExecutorOptions& options);

/// Returns `base` with the AmpLevel of `choice`. If `base` is nullopt, returns default options with
/// this level. Returns nullopt if the choice is f32.
std::optional<AmpOptions> amp_options_of(const AmpChoice& choice,
                                         const std::optional<AmpOptions>& base);

}  // namespace fluid
