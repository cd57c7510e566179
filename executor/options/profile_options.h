#pragma once

#include <cstdint>

namespace fluid {

/// The steps that the profiler records, for each prepared batch size. prepare() allocates the
/// memory for the records.
struct ProfileOptions {
  int64_t warm_up = 3;  ///< number of steps at the start that are not recorded
  int64_t steps = 20;   ///< maximum number of recorded steps; at most kMaxSteps
  static constexpr int64_t kMaxSteps = 10'000;
};

}  // namespace fluid
