#include "executor/profile/step_recorder.h"

namespace fluid {

StepRecorder::StepRecorder(const ProfileOptions& options, const std::vector<size_t>& calls)
    : warm_up_(options.warm_up) {
  StepTimes step;
  for (const size_t count : calls) step.runs.push_back({.calls = std::vector<CallTimes>(count)});
  times_.assign(static_cast<size_t>(options.steps), step);
}

StepTimes* StepRecorder::begin_step() {
  return num_started_++ < warm_up_ || num_recorded_ == times_.size() ? nullptr
                                                                     : &times_[num_recorded_];
}

}  // namespace fluid
