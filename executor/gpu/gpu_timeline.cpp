#include "executor/gpu/gpu_timeline.h"

#include <utility>

namespace fluid {

GpuTimeline::GpuTimeline(std::shared_ptr<const OpenGpu> gpu, std::span<const CollectiveRole> calls)
    : gpu_(std::move(gpu)) {
  const auto mark = [&] { return gpu_->gpu.event(fluid_gpu_times); };
  begin_ = mark();
  for (const CollectiveRole& call : calls) {
    Marks& marks = marks_.emplace_back();
    if (call.awaited_collectives > 0) marks.awaited = mark();
    if (call.exchanges()) {
      marks.exchange = {mark(), mark()};
      if (!end_) end_ = mark();
    } else {
      marks.done = mark();
    }
  }
}

void GpuTimeline::read(int64_t begin, RunTimes& times) const {
  const auto time_of = [&](const GpuEvent& mark) {
    return begin + static_cast<int64_t>(1e6 * gpu_->gpu.milliseconds(begin_, mark));
  };
  int64_t last = begin;
  const auto until = [&](const GpuEvent& mark) {
    const int64_t from = std::exchange(last, time_of(mark));
    return TimeSpan{from, last};
  };
  for (size_t call = 0; call < marks_.size(); ++call) {
    const auto& [awaited, done, exchange] = marks_[call];
    CallTimes& t = times.calls[call];
    t = {};
    if (awaited) t.wait = until(awaited);
    if (done) t.call = until(done);
    if (exchange.begin) t.exchange = {time_of(exchange.begin), time_of(exchange.end)};
  }
  times.last_wait = {};
  if (end_) times.last_wait = until(end_);
}

}  // namespace fluid
