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

/// What a training step costs.
struct StepCost {
  double ms = 0;      ///< the median of some steps; infinite for one that does not fit
  int64_t bytes = 0;  ///< of the arena
  bool operator==(const StepCost&) const = default;
};

using StepCosts = std::array<StepCost, 3>;  ///< by Precision

/// In which precision to train: a choice by timing, kept with its figures.
struct AmpChoice {
  Precision precision = Precision::f32;
  DType dtype = DType::bf16;  ///< the half precision that was tried
  StepCosts costs = {};       ///< zeros where the choice comes without its figures
  bool kept = false;          ///< from an earlier measurement

  bool measured() const { return costs.front().ms > 0; }
  /// "bf16 o1, the fastest: f32 20.3 ms a step in 30.20 MiB, o1 12.1 ms in 20.10 MiB, ...".
  std::string text() const;
};

/// The fastest; of those within 5 % of it the smallest; of those within 5 % of that the first.
Precision best_of(const StepCosts& costs);

/// Times steps of `options.batch` samples in f32 and in `options.amp`, at either level, on
/// executors and data of their own, or takes what such a measurement came to: it is kept in
/// `options.cache_dir`, for this program, these options, this place and these libraries. Throws
/// what an Executor throws when no precision fits.
AmpChoice choose_amp(const Program& program, Place place, const ExecutorOptions& options);

/// What choose_amp() has come to before; nothing when it would measure.
std::optional<AmpChoice> kept_amp_choice(const Program& program, Place place,
                                         const ExecutorOptions& options);

/// The mixed precision of a choice, in all else as `tried`.
std::optional<AmpOptions> amp_of(const AmpChoice& choice, const std::optional<AmpOptions>& tried);

}  // namespace fluid
