#pragma once

#include <string>
#include <vector>

#include "executor/device/peak_rates.h"
#include "executor/profile/call_info.h"
#include "executor/profile/step_recorder.h"
#include "passes/options.h"

namespace fluid {

/// The recorded times of the steps of one mode and batch size.
struct ProfiledStep {
  /// A name such as "training step of 128 samples" or "eval step of 8 samples of length 32".
  std::string name() const;
  Mode mode = Mode::train;
  int64_t batch = 0;
  int64_t length = 0;  ///< length of the step; 0 for a program without kLength
  /// Descriptions of the calls, indexed by run and then by call. A step has one run, or one run per
  /// micro-batch.
  std::vector<std::vector<CallInfo>> runs;
  std::vector<StepTimes> times;
};

/// Times of the calls of profiled steps.
struct Profile {
  std::string program;
  int64_t rank = 0;     ///< rank of this process
  int threads = 1;      ///< number of compute threads; 0 on a GPU
  int64_t warm_up = 0;  ///< steps of each mode and batch size that run before recording starts
  /// One entry per mode and batch size, in the order in which the steps were prepared.
  std::vector<ProfiledStep> steps;

  bool empty() const { return steps.empty(); }
  std::string device_text() const;  ///< text such as "on 2 threads" or "on a GPU"
  /// Formats tables for each mode and batch size: the time of each call, and sums by layer, kernel
  /// and role. Each row shows which fraction of the peak rates `rates` its calls reach. A separate
  /// row shows the bandwidth of the collectives. Times are means over the faster half of the steps.
  std::string table(const PeakRates& rates) const;
  /// Formats a Chrome trace (JSON, "X" events, in microseconds), which Perfetto opens. Each rank is
  /// a process of the trace. Computation and communication are two threads of the process. Traces
  /// of processes on one machine share a clock. Each call also shows the fraction of the peak rates
  /// `rates` that it reaches, unless the peak rate is 0.
  std::string trace(const PeakRates& rates) const;
};

}  // namespace fluid
