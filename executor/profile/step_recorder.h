#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/device/step_times.h"
#include "executor/options/profile_options.h"

namespace fluid {

/// The times of some steps of one kind, in room that is there before the first.
class StepRecorder {
 public:
  /// `calls`: of each run of an executable that a step consists of, how many its list has.
  StepRecorder(const ProfileOptions& options, const std::vector<size_t>& calls);

  /// Where the step that begins now leaves its times; null when it is not recorded.
  StepTimes* next();
  /// The step that next() was for has run to its end.
  void keep() { ++kept_; }
  std::span<const StepTimes> times() const { return std::span(times_).first(kept_); }
  int64_t begun() const { return begun_; }  ///< steps, recorded or not

 private:
  int64_t warm_up_, begun_ = 0;
  size_t kept_ = 0;
  std::vector<StepTimes> times_;
};

}  // namespace fluid
