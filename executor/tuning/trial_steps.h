#pragma once

#include <functional>
#include <span>
#include <vector>

#include "frontend/program.h"
#include "ir/tensor.h"

namespace fluid {

/// Creates a synthetic batch for the feeds of `program`: floats are noise in [0, 1), integers are
/// 0.
Batch synthetic_batch(const Program& program, int64_t samples);

inline constexpr size_t kWarmUpSteps = 2;
/// Calls `step` kWarmUpSteps times to warm up. Then calls `step` until `budget_ms` ms have passed,
/// at least 5 and at most 100 times. Returns the time of each call after the warm-up, in ms.
std::vector<double> time_steps(const std::function<void()>& step, double budget_ms);

/// Returns the median of `times`; for an even count, the upper of the two middle values.
double median(std::span<const double> times);

}  // namespace fluid
