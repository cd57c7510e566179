#pragma once

#include <memory>
#include <span>
#include <vector>

#include "executor/device/collective_role.h"
#include "executor/device/step_times.h"
#include "executor/gpu_driver/open_gpu.h"

namespace fluid {

/// Events at the begin and end of work on a stream.
struct GpuSpan {
  GpuEvent begin, end;
};

/// Times the calls of a step with GPU events, which are captured into the step's graph, so the host
/// does not affect the times. A call's time starts when the previous call on the steps' stream
/// ends. Waiting for the rejection flag counts for the call that tests it.
class GpuTimeline {
 public:
  /// `calls`: the collective role of each call.
  GpuTimeline(std::shared_ptr<const OpenGpu> gpu, std::span<const CollectiveRole> calls);

  // Events on the steps' stream, in this order.
  void note_begin() const { note(begin_); }
  /// The collectives that the call waits for are done.
  void note_awaited(size_t call) const { note(marks_[call].awaited); }
  void note_done(size_t call) const { note(marks_[call].done); }
  /// The collectives that no call reads are done.
  void note_end() const {
    if (end_) note(end_);
  }

  /// Events to record around the collective, on the collectives' stream.
  const GpuSpan& exchange(size_t call) const { return marks_[call].exchange; }

  /// Reads the times of a completed run that began at `begin`, a clock_ns() time.
  void read(int64_t begin, RunTimes& times) const;

 private:
  struct Marks {
    GpuEvent awaited;  ///< of a call that waits for collectives: the wait is over
    GpuEvent done;     ///< of a call other than a collective: its work is done
    GpuSpan exchange;  ///< of a collective
  };
  void note(const GpuEvent& mark) const { gpu_->gpu.record(mark, gpu_->stream); }

  std::shared_ptr<const OpenGpu> gpu_;
  GpuEvent begin_;
  GpuEvent end_;  ///< set if the step has collectives
  std::vector<Marks> marks_;
};

}  // namespace fluid
