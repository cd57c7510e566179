#pragma once

#include <functional>
#include <span>
#include <vector>

#include "frontend/program.h"
#include "ir/tensor.h"

namespace fluid {

/// Feeds as a reader would give them, as `program` declares them: noise in [0, 1) for floats,
/// integers of the first class.
Batch trial_batch(const Program& program, int64_t samples);

inline constexpr size_t kWarmUpSteps = 2;
/// Calls `step` kWarmUpSteps times, then at least 5 times, until `enough` ms or 100 calls are over.
/// The milliseconds of each of these calls.
std::vector<double> time_steps(const std::function<void()>& step, double enough);

/// Of an even number of times the upper one in the middle.
double median(std::span<const double> times);

}  // namespace fluid
