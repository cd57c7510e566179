#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "executor/place.h"
#include "frontend/program.h"
#include "passes/options.h"

namespace fluid {

struct ExecutorOptions;

/// What a training step costs.
struct StepCost {
  double ms = 0;      ///< the median of some steps
  int64_t bytes = 0;  ///< of the arena
  bool operator==(const StepCost&) const = default;
};

/// Whether to train in mixed precision: a choice by timing, kept with its figures.
struct AmpChoice {
  bool half = false;
  DType dtype = DType::bf16;  ///< the half precision that was tried
  StepCost in_f32, in_half;
  bool kept = false;  ///< from an earlier measurement

  /// "bf16: 12.1 ms a step against 20.3 ms in f32, arena 20.10 MiB against 30.20 MiB".
  std::string text() const;
};

/// The faster, where the two differ by more than 5 %; else the smaller, where they differ by as
/// much; else f32. What does not fit takes infinitely long.
bool half_is_better(const StepCost& in_f32, const StepCost& in_half);

/// Times steps of `options.batch` samples in f32 and in `options.amp`, on executors and data of
/// their own, or takes what such a measurement came to: it is kept in `options.cache_dir`, for this
/// program, these options, this CPU and these libraries. Throws what an Executor throws in both.
AmpChoice choose_amp(const Program& program, Place place, const ExecutorOptions& options);

}  // namespace fluid
