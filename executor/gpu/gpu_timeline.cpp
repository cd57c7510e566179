#include "executor/gpu/gpu_timeline.h"

#include <utility>

namespace fluid {

GpuTimeline::GpuTimeline(std::shared_ptr<const OpenGpu> gpu, std::span<const CollectiveRole> calls)
    : gpu_(std::move(gpu)) {
  const auto new_event = [&] { return gpu_->gpu.create_event(fluid_gpu_event_timing); };
  begin_ = new_event();
  for (const CollectiveRole& call : calls) {
    CallEvents& events = events_.emplace_back();
    if (call.awaited_collectives > 0) events.wait_end = new_event();
    if (call.is_collective()) {
      events.collective = {new_event(), new_event()};
      if (!end_) end_ = new_event();
    } else {
      events.call_end = new_event();
    }
  }
}

void GpuTimeline::read_times(int64_t begin_ns, RunTimes& times) const {
  const auto time_of = [&](const GpuEvent& event) {
    return begin_ns + static_cast<int64_t>(1e6 * gpu_->gpu.milliseconds(begin_, event));
  };
  int64_t last = begin_ns;
  const auto until = [&](const GpuEvent& event) {
    const int64_t from = std::exchange(last, time_of(event));
    return TimeSpan{from, last};
  };
  for (size_t call = 0; call < events_.size(); ++call) {
    const auto& [wait_end, call_end, collective] = events_[call];
    CallTimes& t = times.calls[call];
    t = {};
    if (wait_end) t.wait = until(wait_end);
    if (call_end) t.call = until(call_end);
    if (collective.begin) t.collective = {time_of(collective.begin), time_of(collective.end)};
  }
  times.final_wait = {};
  if (end_) times.final_wait = until(end_);
}

}  // namespace fluid
