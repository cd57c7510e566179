#pragma once

#include <memory>
#include <span>
#include <vector>

#include "executor/device/collective_role.h"
#include "executor/device/step_times.h"
#include "executor/gpu_driver/open_gpu.h"

namespace fluid {

/// Timing events recorded before and after some work on a stream.
struct GpuEventPair {
  GpuEvent begin, end;
};

/// Measures the time of each call of a step. The timing events are part of the step's CUDA graph,
/// so that the host does not affect the times. A call's interval begins when the previous call on
/// the compute stream ends, and includes waiting for the all-reduce of the rejection flag.
class GpuTimeline {
 public:
  /// `calls`: the CollectiveRole of each call of the step, in queueing order.
  GpuTimeline(std::shared_ptr<const OpenGpu> gpu, std::span<const CollectiveRole> calls);

  // The record functions record events on the compute stream. Call record_step_begin() first and
  // record_step_end() last. For each call that waits for collectives, call record_wait_end(). For
  // each call that is no collective, call record_call_end().
  void record_step_begin() const { record(begin_); }
  /// Must be called after the GpuCollectives::stream_wait() for call `call`.
  void record_wait_end(size_t call) const { record(events_[call].wait_end); }
  void record_call_end(size_t call) const { record(events_[call].call_end); }
  /// Must be called after the GpuCollectives::stream_wait() for all remaining collectives.
  void record_step_end() const {
    if (end_) record(end_);
  }

  /// The events that the caller records before and after a collective, on the communication stream.
  const GpuEventPair& collective_span(size_t call) const { return events_[call].collective; }

  /// Stores the times of a completed step in `times`. `begin_ns`: clock_ns() at the start of the
  /// step.
  void read_times(int64_t begin_ns, RunTimes& times) const;

 private:
  struct CallEvents {
    GpuEvent wait_end;  ///< end of the call's wait for collectives; empty if the call does not wait
    GpuEvent call_end;  ///< end of the call; empty for a collective
    GpuEventPair collective;  ///< begin and end of a collective; empty for other calls
  };
  void record(const GpuEvent& event) const { gpu_->gpu.record(event, gpu_->stream); }

  std::shared_ptr<const OpenGpu> gpu_;
  GpuEvent begin_;
  GpuEvent end_;  ///< end of the step; empty if the step has no collectives
  std::vector<CallEvents> events_;
};

}  // namespace fluid
