#include "executor/gpu/gpu_place_memory.h"

#include <algorithm>
#include <cstring>

#include "executor/gpu/gpu_results.h"
#include "executor/step_report.h"

namespace fluid {
namespace {

constexpr int64_t kStaging = int64_t{1} << 20;
constexpr int64_t kCell = 64;  ///< what is written at every step is smaller

}  // namespace

GpuPlaceMemory::GpuPlaceMemory(std::shared_ptr<const OpenGpu> gpu, const Regions& regions)
    : PlaceMemory(regions), gpu_(std::move(gpu)) {
  // A value without elements has an address too.
  arena_ = gpu_->gpu.allocate(std::max(regions.total(), kCell));
  host_slots_ = gpu_->gpu.allocate_host(std::max(2 * regions.slot, kCell));
  refused_ = gpu_->gpu.allocate(sizeof(int64_t));
  reports_ = gpu_->gpu.allocate_host(2 * sizeof(StepReport));
  staging_ = gpu_->gpu.allocate_host(kStaging);
  gpu_->gpu.fill(gpu_->stream, arena_.data(), 0, regions.total());
  allow_updates();
  gpu_->gpu.synchronize(gpu_->stream);  // others write to it on streams of their own
  std::memset(host_slots_.data(), 0, static_cast<size_t>(host_slots_.bytes()));
  memory_ = laid_out(arena_.data(), regions);
  memory_.host_slots = {host_slots_.data(), host_slots_.data() + regions.slot};
  memory_.reports = {reports_.data(), reports_.data() + sizeof(StepReport)};
  memory_.refused = refused_.data();
}

void GpuPlaceMemory::fetch(int slot, int64_t offset, int64_t bytes) const {
  if (bytes <= kSentByStep) return;
  const auto i = static_cast<size_t>(slot);
  gpu_->gpu.copy(gpu_->fetches, at().host_slots[i] + offset, at().slots[i] + offset, bytes);
  gpu_->gpu.synchronize(gpu_->fetches);
}

void GpuPlaceMemory::allow_updates() {
  gpu_->gpu.fill(gpu_->stream, refused_.data(), 0, refused_.bytes());
}

void GpuPlaceMemory::read(void* to, const std::byte* from, int64_t bytes) const {
  for (int64_t at = 0; at < bytes; at += kStaging) {
    const int64_t some = std::min(kStaging, bytes - at);
    gpu_->gpu.copy(gpu_->stream, staging_.data(), from + at, some);
    gpu_->gpu.synchronize(gpu_->stream);
    std::memcpy(static_cast<std::byte*>(to) + at, staging_.data(), static_cast<size_t>(some));
  }
}

std::byte* GpuPlaceMemory::next_cell() {
  if (cell_ == kStaging) {
    gpu_->gpu.synchronize(gpu_->stream);
    cell_ = 0;
  }
  return staging_.data() + std::exchange(cell_, cell_ + kCell);
}

void GpuPlaceMemory::write(std::byte* to, const void* from, int64_t bytes) {
  if (bytes <= kCell) {
    std::byte* cell = next_cell();
    std::memcpy(cell, from, static_cast<size_t>(bytes));
    return gpu_->gpu.copy(gpu_->stream, to, cell, bytes);
  }
  for (int64_t at = 0; at < bytes; at += kStaging) {
    const int64_t some = std::min(kStaging, bytes - at);
    gpu_->gpu.synchronize(gpu_->stream);
    std::memcpy(staging_.data(), static_cast<const std::byte*>(from) + at,
                static_cast<size_t>(some));
    gpu_->gpu.copy(gpu_->stream, to + at, staging_.data(), some);
  }
  gpu_->gpu.synchronize(gpu_->stream);
  cell_ = 0;
}

void GpuPlaceMemory::take(const PlaceMemory& from) {
  const auto copy = [&](std::byte* to, const std::byte* old, int64_t bytes) {
    if (bytes > 0) gpu_->gpu.copy(gpu_->stream, to, old, bytes);
  };
  copy(at().state, from.at().state, std::min(regions().state, from.regions().state));
  const int64_t slot = std::min(regions().slot, from.regions().slot);
  for (size_t i = 0; i < 2; ++i) {
    copy(at().slots[i], from.at().slots[i], slot);
    std::memcpy(at().host_slots[i], from.at().host_slots[i], static_cast<size_t>(slot));
    std::memcpy(at().reports[i], from.at().reports[i], sizeof(StepReport));
  }
  gpu_->gpu.synchronize(gpu_->stream);  // `from` may be gone soon
}

}  // namespace fluid
