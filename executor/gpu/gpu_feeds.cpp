#include "executor/gpu/gpu_feeds.h"

#include <algorithm>

#include "passes/memory_plan.h"

namespace fluid {

std::vector<ByteRange> joined(std::vector<ByteRange> stretches) {
  std::ranges::sort(stretches, {}, &ByteRange::offset);
  std::vector<ByteRange> few;
  for (const ByteRange& next : stretches) {
    if (few.empty() || next.offset > aligned(few.back().offset + few.back().bytes)) {
      few.push_back(next);
    } else {
      few.back().bytes = next.offset + next.bytes - few.back().offset;
    }
  }
  return few;
}

GpuFeeds::GpuFeeds(std::shared_ptr<const OpenGpu> gpu)
    : gpu_(std::move(gpu)), stream_(gpu_->gpu.stream()) {
  for (auto* events : {&copied_, &read_}) {
    for (GpuEvent& event : *events) event = gpu_->gpu.event();
  }
}

void GpuFeeds::copy(const Memory& memory, int slot, std::span<const ByteRange> feeds) const {
  if (feeds.empty()) return;
  const Gpu& gpu = gpu_->gpu;
  const auto i = static_cast<size_t>(slot);
  gpu.wait(stream_, read_[i]);
  for (const ByteRange& feed : feeds) {
    gpu.copy(stream_, memory.slots.feeds[i] + feed.offset, memory.host_slots.feeds[i] + feed.offset,
             feed.bytes);
  }
  gpu.record(copied_[i], stream_);
  gpu.wait(gpu_->stream, copied_[i]);
}

void GpuFeeds::note_reader(int slot) const {
  gpu_->gpu.record(read_[static_cast<size_t>(slot)], gpu_->stream);
}

}  // namespace fluid
