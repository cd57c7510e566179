#pragma once

#include <functional>
#include <span>
#include <vector>

#include "frontend/program.h"
#include "ir/tensor.h"

namespace fluid {

/// A synthetic batch for the feeds of `program`: floats are noise in [0, 1), integers are 0.
Batch trial_batch(const Program& program, int64_t samples);

inline constexpr size_t kWarmUpSteps = 2;
/// Calls `step` kWarmUpSteps times. Then calls it at least 5 times, until `enough` ms or 100 calls.
/// Returns the milliseconds of each of the latter.
std::vector<double> time_steps(const std::function<void()>& step, double enough);

/// The median; for an even count, the upper of the two middle values.
double median(std::span<const double> times);

}  // namespace fluid
