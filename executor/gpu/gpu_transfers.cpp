#include "executor/gpu/gpu_transfers.h"

#include <algorithm>

#include "passes/memory_plan.h"

namespace fluid {
namespace {

std::vector<ByteRange> outputs_copied_by_step(const MemoryPlan& plan) {
  std::vector<ByteRange> outputs;
  for (const auto& [value, range] : plan.values) {
    if (range.region != Region::outputs) continue;
    if (range.bytes > 0 && range.bytes <= kMaxCopiedByStep) {
      outputs.push_back({range.offset, range.bytes});
    }
  }
  return merge_ranges(std::move(outputs));
}

}  // namespace

std::vector<ByteRange> merge_ranges(std::vector<ByteRange> ranges) {
  std::ranges::sort(ranges, {}, &ByteRange::offset);
  std::vector<ByteRange> merged;
  for (const ByteRange& next : ranges) {
    if (merged.empty() || next.offset > align_up(merged.back().offset + merged.back().bytes)) {
      merged.push_back(next);
    } else {
      merged.back().bytes = next.offset + next.bytes - merged.back().offset;
    }
  }
  return merged;
}

GpuFeeds::GpuFeeds(std::shared_ptr<const OpenGpu> gpu)
    : gpu_(std::move(gpu)), stream_(gpu_->gpu.create_stream()) {
  for (auto* events : {&copied_, &read_}) {
    for (GpuEvent& event : *events) event = gpu_->gpu.create_event();
  }
}

void GpuFeeds::copy(const MemoryAddresses& memory, int slot,
                    std::span<const ByteRange> feeds) const {
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

void GpuFeeds::record_slot_read(int slot) const {
  gpu_->gpu.record(read_[static_cast<size_t>(slot)], gpu_->stream);
}

GpuResults::GpuResults(std::shared_ptr<const OpenGpu> gpu, const MemoryPlan& plan,
                       std::string recipe, std::vector<std::pair<const ir::Op*, int>> operands,
                       bool has_error_sync)
    : gpu_(std::move(gpu)),
      recipe_(std::move(recipe)),
      checked_operands_(std::move(operands)),
      outputs_(outputs_copied_by_step(plan)),
      has_error_sync_(has_error_sync),
      error_words_(gpu_->gpu.allocate(kErrorBytes * std::max<int64_t>(1, operand_count()))),
      host_error_words_(gpu_->gpu.allocate_host(2 * (error_words_.bytes() + kRejectionFlagBytes))) {
  for (GpuEvent& end : ends_) end = gpu_->gpu.create_event();
}

void GpuResults::bind(const MemoryAddresses& memory, const Variables& variables) {
  memory_ = memory;
  reported_ = variables_to_report(variables, recipe_);
}

void GpuResults::clear_error_words() const {
  if (has_error_words()) gpu_->gpu.fill(gpu_->stream, error_words_.data(), 0, error_words_.bytes());
}

void GpuResults::copy_to_host(int output_slot) const {
  const Gpu& gpu = gpu_->gpu;
  const auto slot = static_cast<size_t>(output_slot);
  if (has_error_words()) {
    gpu.copy(gpu_->stream, host_error_words(output_slot), error_words_.data(),
             error_words_.bytes());
  }
  if (has_error_sync_)
    gpu.copy(gpu_->stream, host_rejection_flag(output_slot), memory_.rejection_flag,
             kRejectionFlagBytes);
  for (const ByteRange& output : outputs_) {
    gpu.copy(gpu_->stream, memory_.host_slots.outputs[slot] + output.offset,
             memory_.slots.outputs[slot] + output.offset, output.bytes);
  }
  for (const ReportedVariable& r : reported_) {
    gpu.copy(gpu_->stream, memory_.reports[slot] + r.cell * StepReport::kCellBytes,
             memory_.state + r.offset, r.bytes());
  }
}

void GpuResults::record_end(int output_slot) const {
  gpu_->gpu.record(end_event(output_slot), gpu_->stream);
}

StepStatus GpuResults::status(int output_slot) const {
  const auto* words = reinterpret_cast<const int64_t*>(host_error_words(output_slot));
  for (size_t i = 0; i < checked_operands_.size(); ++i) {
    if (words[2 * i] == 0) continue;
    return {checked_operands_[i].first, checked_operands_[i].second, words[2 * i + 1]};
  }
  return {};
}

bool GpuResults::rejected_by_other_rank(int output_slot) const {
  return has_error_sync_ &&
         *reinterpret_cast<const int64_t*>(host_rejection_flag(output_slot)) != 0;
}

}  // namespace fluid
