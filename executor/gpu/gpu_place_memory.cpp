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

constexpr int64_t kStagingBytes = int64_t{1} << 20;
constexpr int64_t kHalfBytes = kStagingBytes / 2;
/// Bytes of one cell of the staging buffer. Writes of at most this size are asynchronous.
constexpr int64_t kCellBytes = 64;

std::unique_ptr<std::byte[]> allocate_pageable(int64_t bytes) {
  std::unique_ptr<std::byte[]> found(new (std::nothrow) std::byte[static_cast<size_t>(bytes)]);
  if (found != nullptr) return found;
  throw DeviceError(
      fmt::format("the host has no {} of memory, where a GPU's variables are saved while its arena "
                  "grows: prepare the largest step first, or free host memory",
                  bytes_text(static_cast<double>(bytes))));
}

}  // namespace

GpuPlaceMemory::GpuPlaceMemory(std::shared_ptr<const OpenGpu> gpu, const RegionSizes& regions)
    : PlaceMemory(regions), gpu_(std::move(gpu)) {
  host_slots_ = gpu_->gpu.allocate_host(std::max(regions.slot_bytes(), kCellBytes));
  rejection_flag_ = gpu_->gpu.allocate(sizeof(int64_t));
  reports_ = gpu_->gpu.allocate_host(2 * sizeof(StepReport));
  staging_ = gpu_->gpu.allocate_host(kStagingBytes);
  for (GpuEvent& event : copied_) event = gpu_->gpu.create_event();
  clear_rejection_flag();
  std::memset(host_slots_.data(), 0, static_cast<size_t>(host_slots_.bytes()));
  allocate_arena();
}

/// Allocates the arena and fills it with zeros.
void GpuPlaceMemory::allocate_arena() {
  // Allocates at least one cell: allocating 0 bytes yields a null address.
  arena_ = gpu_->gpu.allocate(std::max(regions().total_bytes(), kCellBytes));
  gpu_->gpu.fill(gpu_->stream, arena_.data(), 0, regions().total_bytes());
  // Waits for the fill, because other streams write to the arena.
  gpu_->gpu.synchronize(gpu_->stream);
  memory_ = region_addresses(arena_.data(), regions());
  memory_.host_slots = slot_addresses(host_slots_.data(), regions());
  memory_.reports = {reports_.data(), reports_.data() + sizeof(StepReport)};
  memory_.rejection_flag = rejection_flag_.data();
}

void GpuPlaceMemory::fetch(int slot, int64_t offset, int64_t bytes) const {
  if (bytes <= kMaxCopiedByStep) return;
  const auto i = static_cast<size_t>(slot);
  gpu_->gpu.copy(gpu_->fetch_stream, addresses().host_slots.outputs[i] + offset,
                 addresses().slots.outputs[i] + offset, bytes);
  gpu_->gpu.synchronize(gpu_->fetch_stream);
}

void GpuPlaceMemory::clear_rejection_flag() {
  gpu_->gpu.fill(gpu_->stream, rejection_flag_.data(), 0, rejection_flag_.bytes());
}

void GpuPlaceMemory::read(void* to, const std::byte* from, int64_t bytes) const {
  for (int64_t at = 0; at < bytes; at += kStagingBytes) {
    const int64_t some = std::min(kStagingBytes, bytes - at);
    gpu_->gpu.copy(gpu_->stream, staging_.data(), from + at, some);
    gpu_->gpu.synchronize(gpu_->stream);
    std::memcpy(static_cast<std::byte*>(to) + at, staging_.data(), static_cast<size_t>(some));
  }
}

/// The cells of the staging buffer form a ring buffer of two halves. Before reusing a half, the
/// host waits for the copies from this half, which are usually complete.
std::byte* GpuPlaceMemory::next_cell() {
  if (next_cell_offset_ == kStagingBytes) next_cell_offset_ = 0;
  if (next_cell_offset_ % kHalfBytes == 0) {
    const auto half = static_cast<size_t>(next_cell_offset_ / kHalfBytes);
    gpu_->gpu.record(copied_[1 - half], gpu_->stream);
    gpu_->gpu.synchronize(copied_[half]);
  }
  return staging_.data() + std::exchange(next_cell_offset_, next_cell_offset_ + kCellBytes);
}

void GpuPlaceMemory::write(std::byte* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  if (bytes <= kCellBytes) {
    std::byte* cell = next_cell();
    std::memcpy(cell, from, static_cast<size_t>(bytes));
    return gpu_->gpu.copy(gpu_->stream, to, cell, bytes);
  }
  for (int64_t at = 0; at < bytes; at += kStagingBytes) {
    const int64_t some = std::min(kStagingBytes, bytes - at);
    gpu_->gpu.synchronize(gpu_->stream);
    std::memcpy(staging_.data(), static_cast<const std::byte*>(from) + at,
                static_cast<size_t>(some));
    gpu_->gpu.copy(gpu_->stream, to + at, staging_.data(), some);
  }
  gpu_->gpu.synchronize(gpu_->stream);
}

/// Saves the variables in host memory while the arena is replaced, because the GPU may not have
/// memory for two arenas.
std::shared_ptr<PlaceMemory> GpuPlaceMemory::reallocate(const RegionSizes& regions) {
  const int64_t bytes = this->regions().state;
  const std::unique_ptr<std::byte[]> variables = allocate_pageable(bytes);
  read(variables.get(), addresses().state, bytes);
  arena_ = {};
  memory_.state = nullptr;
  try {
    auto memory = std::make_shared<GpuPlaceMemory>(gpu_, regions);
    memory->write(memory->addresses().state, variables.get(), bytes);
    for (size_t i = 0; i < 2; ++i) {
      std::memcpy(memory->addresses().host_slots.outputs[i], addresses().host_slots.outputs[i],
                  static_cast<size_t>(this->regions().outputs));
      std::memcpy(memory->addresses().reports[i], addresses().reports[i], sizeof(StepReport));
    }
    return memory;
  } catch (...) {
    allocate_arena();
    write(addresses().state, variables.get(), bytes);
    throw;
  }
}

}  // namespace fluid
