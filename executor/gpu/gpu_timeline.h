#pragma once

#include <memory>
#include <span>
#include <vector>

#include "executor/device/exchange_calls.h"
#include "executor/device/step_times.h"
#include "executor/gpu/open_gpu.h"

namespace fluid {

/// The begin and the end of something on a stream.
struct GpuSpan {
  GpuEvent begin, end;
};

/// When the calls of a step run, by the GPU's clock. Its marks are recorded into the step's graph,
/// which leaves them as it runs: so the step is timed as it always runs, and the host is in no
/// figure. What a call takes reaches from where the one before ended on the steps' stream; the wait
/// for word of data that other processes refused is part of the call that needs it.
class GpuTimeline {
 public:
  /// `calls`: the role of each.
  GpuTimeline(std::shared_ptr<const OpenGpu> gpu, std::span<const ExchangeRole> calls);

  // What is recorded, on the steps' stream, in this order.
  void note_begin() const { note(begin_); }
  /// What the call waits for is there.
  void note_awaited(size_t call) const { note(marks_[call].awaited); }
  void note_done(size_t call) const { note(marks_[call].done); }
  /// Exchanges that no call reads are done.
  void note_end() const {
    if (end_) note(end_);
  }

  /// For the stream that exchanges run on.
  const GpuSpan& exchange(size_t call) const { return marks_[call].exchange; }

  /// The times of a run that is done, which began at `begin`, as clock_ns().
  void read(int64_t begin, RunTimes& times) const;

 private:
  struct Marks {
    GpuEvent awaited;  ///< of a call that waits for exchanges
    GpuEvent done;     ///< of a call that is no exchange
    GpuSpan exchange;  ///< of one that is
  };
  void note(const GpuEvent& mark) const { gpu_->gpu.record(mark, gpu_->stream); }

  std::shared_ptr<const OpenGpu> gpu_;
  GpuEvent begin_;
  GpuEvent end_;  ///< of calls of which some exchange
  std::vector<Marks> marks_;
};

}  // namespace fluid
