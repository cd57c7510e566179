#include "executor/gpu/gpu_transfers.h"

#include <algorithm>

#include "passes/memory_plan.h"

namespace fluid {
namespace {

std::vector<ByteRange> sent_outputs(const MemoryPlan& plan) {
  std::vector<ByteRange> outputs;
  for (const auto& [value, range] : plan.values) {
    if (range.region != Region::outputs) continue;
    if (range.bytes > 0 && range.bytes <= kMaxCopiedByStep) {
      outputs.push_back({range.offset, range.bytes});
    }
  }
  return joined(std::move(outputs));
}

}  // namespace

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

GpuResults::GpuResults(std::shared_ptr<const OpenGpu> gpu, const MemoryPlan& plan,
                       std::vector<std::pair<const ir::Op*, int>> operands, bool shares)
    : gpu_(std::move(gpu)),
      operands_(std::move(operands)),
      outputs_(sent_outputs(plan)),
      has_error_sync_(shares),
      errors_(gpu_->gpu.allocate(kErrorBytes * std::max<int64_t>(1, this->operands()))),
      host_errors_(gpu_->gpu.allocate_host(2 * (errors_.bytes() + kRejectionFlagBytes))) {
  for (GpuEvent& end : ends_) end = gpu_->gpu.event();
}

void GpuResults::bind(const Memory& memory, const Variables& variables) {
  memory_ = memory;
  reported_ = reported(variables);
}

void GpuResults::clear_errors() const {
  if (checks_data()) gpu_->gpu.fill(gpu_->stream, errors_.data(), 0, errors_.bytes());
}

void GpuResults::send(int outputs) const {
  const Gpu& gpu = gpu_->gpu;
  const auto slot = static_cast<size_t>(outputs);
  if (checks_data()) {
    gpu.copy(gpu_->stream, host_errors(outputs), errors_.data(), errors_.bytes());
  }
  if (has_error_sync_)
    gpu.copy(gpu_->stream, host_rejection_flag(outputs), memory_.refused, kRejectionFlagBytes);
  for (const ByteRange& output : outputs_) {
    gpu.copy(gpu_->stream, memory_.host_slots.outputs[slot] + output.offset,
             memory_.slots.outputs[slot] + output.offset, output.bytes);
  }
  for (const Reported& r : reported_) {
    gpu.copy(gpu_->stream, memory_.reports[slot] + r.cell * StepReport::kCell,
             memory_.state + r.offset, r.bytes());
  }
}

void GpuResults::note_end(int outputs) const { gpu_->gpu.record(end(outputs), gpu_->stream); }

Status GpuResults::status(int outputs) const {
  const auto* words = reinterpret_cast<const int64_t*>(host_errors(outputs));
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (words[2 * i] == 0) continue;
    return {operands_[i].first, operands_[i].second, words[2 * i + 1]};
  }
  return {};
}

bool GpuResults::rejected_by_other_rank(int outputs) const {
  return has_error_sync_ && *reinterpret_cast<const int64_t*>(host_rejection_flag(outputs)) != 0;
}

}  // namespace fluid
