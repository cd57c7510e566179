#pragma once

#include <string>
#include <vector>

#include "executor/device/limits.h"
#include "executor/profile/call_info.h"
#include "executor/profile/step_recorder.h"
#include "passes/options.h"

namespace fluid {

/// The recorded steps of one mode and batch size.
struct ProfiledStep {
  std::string name() const;  ///< "training step of 128 samples"
  Mode mode = Mode::train;
  int64_t batch = 0;
  /// The calls of each run of the step. A step has one run, or one per micro-batch.
  std::vector<std::vector<CallInfo>> runs;
  std::vector<StepTimes> times;
};

/// A profile of steps: where their time goes.
struct Profile {
  std::string program;
  int64_t rank = 0;                 ///< rank of this process
  int threads = 1;                  ///< compute threads; 0: on a GPU
  int64_t warm_up = 0;              ///< number of first steps of each kind that are not recorded
  std::vector<ProfiledStep> steps;  ///< steps with recorded times, in the order of preparation

  bool empty() const { return steps.empty(); }
  std::string where() const;  ///< "on 2 threads"
  /// Returns a text table per kind of step: the time per call, and by layer, kernel and role. Rows
  /// show the fraction of `limits` that they reached; collectives show only their bandwidth. Times
  /// are means over the faster half of the steps.
  std::string table(const Limits& limits) const;
  /// Returns a Chrome trace (JSON, "X" events, in microseconds), which Perfetto opens. The process
  /// is the rank; computation and communication are its two threads. Traces of processes on one
  /// machine share a clock. Calls also show the fraction that they reached of each of `limits` that
  /// is not 0.
  std::string trace(const Limits& limits) const;
};

}  // namespace fluid
