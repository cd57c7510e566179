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

/// Cost of a training step.
struct StepCost {
  double ms = 0;      ///< median of several steps; infinite if the step does not fit
  int64_t bytes = 0;  ///< size of the arena
  bool operator==(const StepCost&) const = default;
};

using StepCosts = std::array<StepCost, 3>;  ///< indexed by Precision

/// The precision to train in, with the measurements behind the choice.
struct AmpChoice {
  Precision precision = Precision::f32;
  DType dtype = DType::bf16;  ///< the half precision that was tried
  StepCosts costs = {};       ///< zeros if the choice has no measurements
  bool kept = false;          ///< from an earlier measurement

  bool measured() const { return costs.front().ms > 0; }
  /// For example "bf16 o1, the fastest: f32 20.3 ms a step in 30.20 MiB, o1 12.1 ms in 20.10 MiB,
  /// ...".
  std::string text() const;
};

/// Chooses among the precisions whose step is at most 5 % slower than the fastest one. Of these,
/// chooses among the precisions whose memory is at most 5 % above the smallest. Returns the first
/// of these.
Precision best_of(const StepCosts& costs);

/// Times steps of `options.batch` samples in f32 and in `options.amp` at both levels, in sessions
/// of its own. Keeps the result in `options.cache_dir`, keyed by program, options, place and
/// library versions, and returns an earlier result if there is one. Throws as an Executor does when
/// no precision fits.
AmpChoice choose_amp(const Program& program, Place place, const ExecutorOptions& options);

/// The kept result of choose_amp(); nullopt when there is none.
std::optional<AmpChoice> kept_amp_choice(const Program& program, Place place,
                                         const ExecutorOptions& options);

/// The AmpOptions of a choice; other fields are copied from `tried`. Returns nullopt for f32.
std::optional<AmpOptions> amp_of(const AmpChoice& choice, const std::optional<AmpOptions>& tried);

}  // namespace fluid
