#include "executor/gpu/gpu_place_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "executor/device/bytes_text.h"
#include "executor/device/step_report.h"
#include "executor/gpu/gpu_transfers.h"
#include "ir/error.h"

namespace fluid {
namespace {

constexpr int64_t kStaging = int64_t{1} << 20;
constexpr int64_t kHalf = kStaging / 2;
/// Bytes of staging memory for a small variable, such as one that each step writes.
constexpr int64_t kCell = 64;

std::unique_ptr<std::byte[]> host_bytes(int64_t bytes) {
  std::unique_ptr<std::byte[]> found(new (std::nothrow) std::byte[static_cast<size_t>(bytes)]);
  if (found != nullptr) return found;
  throw DeviceError(
      fmt::format("the host has no {} of memory, where a GPU's variables are saved while its arena "
                  "grows: prepare the largest step first, or free host memory",
                  bytes_text(static_cast<double>(bytes))));
}

}  // namespace

GpuPlaceMemory::GpuPlaceMemory(std::shared_ptr<const OpenGpu> gpu, const Regions& regions)
    : PlaceMemory(regions), gpu_(std::move(gpu)) {
  host_slots_ = gpu_->gpu.allocate_host(std::max(regions.slots(), kCell));
  rejected_ = gpu_->gpu.allocate(sizeof(int64_t));
  reports_ = gpu_->gpu.allocate_host(2 * sizeof(StepReport));
  staging_ = gpu_->gpu.allocate_host(kStaging);
  for (GpuEvent& event : copied_) event = gpu_->gpu.event();
  allow_updates();
  std::memset(host_slots_.data(), 0, static_cast<size_t>(host_slots_.bytes()));
  allocate_arena();
}

/// Allocates the arena and zeroes it.
void GpuPlaceMemory::allocate_arena() {
  // An empty arena gets an address too.
  arena_ = gpu_->gpu.allocate(std::max(regions().total(), kCell));
  gpu_->gpu.fill(gpu_->stream, arena_.data(), 0, regions().total());
  gpu_->gpu.synchronize(gpu_->stream);  // other streams write to the arena
  memory_ = laid_out(arena_.data(), regions());
  memory_.host_slots = slots_at(host_slots_.data(), regions());
  memory_.reports = {reports_.data(), reports_.data() + sizeof(StepReport)};
  memory_.refused = rejected_.data();
}

void GpuPlaceMemory::fetch(int slot, int64_t offset, int64_t bytes) const {
  if (bytes <= kMaxCopiedByStep) return;
  const auto i = static_cast<size_t>(slot);
  gpu_->gpu.copy(gpu_->fetches, at().host_slots.outputs[i] + offset, at().slots.outputs[i] + offset,
                 bytes);
  gpu_->gpu.synchronize(gpu_->fetches);
}

void GpuPlaceMemory::allow_updates() {
  gpu_->gpu.fill(gpu_->stream, rejected_.data(), 0, rejected_.bytes());
}

void GpuPlaceMemory::read(void* to, const std::byte* from, int64_t bytes) const {
  for (int64_t at = 0; at < bytes; at += kStaging) {
    const int64_t some = std::min(kStaging, bytes - at);
    gpu_->gpu.copy(gpu_->stream, staging_.data(), from + at, some);
    gpu_->gpu.synchronize(gpu_->stream);
    std::memcpy(static_cast<std::byte*>(to) + at, staging_.data(), static_cast<size_t>(some));
  }
}

/// The next staging cell for an asynchronous write. Cells form a ring of two halves. Before a half
/// is reused, the host waits for the copies from this half. They are usually done, because the
/// copies from the other half are newer.
std::byte* GpuPlaceMemory::next_cell() {
  if (cell_ == kStaging) cell_ = 0;
  if (cell_ % kHalf == 0) {
    const auto half = static_cast<size_t>(cell_ / kHalf);
    gpu_->gpu.record(copied_[1 - half], gpu_->stream);
    gpu_->gpu.synchronize(copied_[half]);
  }
  return staging_.data() + std::exchange(cell_, cell_ + kCell);
}

void GpuPlaceMemory::write(std::byte* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
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
}

/// Copies the variables to the host first: the GPU may not have room for both arenas.
std::shared_ptr<PlaceMemory> GpuPlaceMemory::grown(const Regions& regions) {
  const int64_t bytes = this->regions().state;
  const std::unique_ptr<std::byte[]> variables = host_bytes(bytes);
  read(variables.get(), at().state, bytes);
  arena_ = {};
  memory_.state = nullptr;
  try {
    auto memory = std::make_shared<GpuPlaceMemory>(gpu_, regions);
    memory->write(memory->at().state, variables.get(), bytes);
    for (size_t i = 0; i < 2; ++i) {
      std::memcpy(memory->at().host_slots.outputs[i], at().host_slots.outputs[i],
                  static_cast<size_t>(this->regions().outputs));
      std::memcpy(memory->at().reports[i], at().reports[i], sizeof(StepReport));
    }
    return memory;
  } catch (...) {
    allocate_arena();
    write(at().state, variables.get(), bytes);
    throw;
  }
}

}  // namespace fluid
