#pragma once

#include <string>
#include <vector>

#include "executor/device/limits.h"
#include "executor/profile/call_info.h"
#include "executor/profile/step_recorder.h"
#include "passes/options.h"

namespace fluid {

/// The recorded steps of one mode and batch.
struct ProfiledStep {
  std::string name() const;  ///< "train step of 128 samples"
  Mode mode = Mode::train;
  int64_t batch = 0;
  /// The calls of each run that the step consists of: one, or one a slice of its batch.
  std::vector<std::vector<CallInfo>> runs;
  std::vector<StepTimes> times;
};

/// Where the time of steps goes.
struct Profile {
  std::string program;
  int64_t rank = 0;                 ///< of this process
  int threads = 1;                  ///< that compute; 0: a GPU does
  int64_t warm_up = 0;              ///< steps of each kind that are left out
  std::vector<ProfiledStep> steps;  ///< those with times, in the order of their preparation

  bool empty() const { return steps.empty(); }
  std::string where() const;  ///< "on 2 threads"
  /// As text, for each kind of step: where its time goes, call by call, and by layer, kernel and
  /// role, with what was reached of `limits` (of exchanges, which go by another way, a rate). The
  /// figures are means over the half of the steps that took least.
  std::string table(const Limits& limits) const;
  /// The text of a Chrome trace (JSON, "X" events, in microseconds), which Perfetto opens: the
  /// process is the rank; what it computes and what it exchanges are two threads. Traces of
  /// processes of one machine have one clock. Calls have what they reached of those
  /// `limits` that are not 0, too.
  std::string trace(const Limits& limits) const;
};

}  // namespace fluid
