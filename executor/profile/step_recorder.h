#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/device/step_times.h"
#include "executor/options/profile_options.h"

namespace fluid {

/// Records the times of steps of one kind, in memory allocated beforehand.
class StepRecorder {
 public:
  /// `calls` holds the number of calls of each run in a step.
  StepRecorder(const ProfileOptions& options, const std::vector<size_t>& calls);

  /// Returns where the step that begins now records its times; null if it is not recorded.
  StepTimes* next();
  /// Keeps the times of the last next(), whose step has ended.
  void keep() { ++kept_; }
  std::span<const StepTimes> times() const { return std::span(times_).first(kept_); }
  int64_t begun() const { return begun_; }  ///< steps so far, recorded or not

 private:
  int64_t warm_up_, begun_ = 0;
  size_t kept_ = 0;
  std::vector<StepTimes> times_;
};

}  // namespace fluid
