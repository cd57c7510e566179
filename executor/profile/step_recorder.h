#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/device/step_times.h"
#include "executor/options/profile_options.h"

namespace fluid {

/// Records the times of steps of one mode and batch size in preallocated memory.
class StepRecorder {
 public:
  /// `calls`: number of calls in each run of a step.
  StepRecorder(const ProfileOptions& options, const std::vector<size_t>& calls);

  /// Called when a step begins. Returns the record to write the step's times to; null if the step
  /// is not recorded.
  StepTimes* begin_step();
  /// Must be called at the end of a recorded step: adds the record that begin_step() returned to
  /// times().
  void commit() { ++num_recorded_; }
  std::span<const StepTimes> times() const { return std::span(times_).first(num_recorded_); }

 private:
  int64_t warm_up_, num_started_ = 0;
  size_t num_recorded_ = 0;
  std::vector<StepTimes> times_;
};

}  // namespace fluid
