#include "executor/cpu/host_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "executor/device/out_of_memory.h"

namespace fluid {
namespace {

constexpr int64_t kMinPrefaultBytes = int64_t{16} << 20;
// A new arena is not prefaulted while an old one is at least this fraction of its size, because
// both would take physical memory.
constexpr int64_t kLargeFraction = 8;
// The programs of further steps may need more than the prepared memory by this fraction.
constexpr int64_t kReserveFraction = 8;

void copy_bytes(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace

HostMemory::HostMemory(const RegionSizes& regions)
    : HostMemory(regions, Arena(regions.total_bytes())) {}

HostMemory::HostMemory(const RegionSizes& regions, Arena arena)
    : PlaceMemory(regions), arena_(std::move(arena)) {
  memory_ = region_addresses(arena_.data(), regions);
  for (size_t slot = 0; slot < 2; ++slot) memory_.reports[slot] = reports_[slot].bytes.data();
}

void HostMemory::read(void* to, const std::byte* from, int64_t bytes) const {
  copy_bytes(to, from, bytes);
}

void HostMemory::write(std::byte* to, const void* from, int64_t bytes) {
  copy_bytes(to, from, bytes);
}

void HostMemory::prepare_for(const RegionSizes& regions, bool maps_state) {
  const int64_t bytes = regions.total_bytes();
  if (bytes == 0) prepared_ = Arena();
  const bool replaces_large_arena = arena_.size() > bytes / kLargeFraction;
  if (replaces_large_arena || bytes < kMinPrefaultBytes || bytes <= prepared_.size()) return;
  try {
    prepared_ = Arena();
    prepared_ = Arena(bytes + bytes / kReserveFraction);
    prepared_.prefault(maps_state ? regions.state : 0, bytes);
  } catch (const OutOfMemory&) {
    // The memory may suffice without the reserve.
  }
}

bool HostMemory::map_state(const StateRange& range, std::shared_ptr<const StateFile> file) {
  if (!arena_.map(range, *file)) return false;
  files_.insert_or_assign(range.offset, MappedFile{range, std::move(file)});
  return true;
}

/// Maps the files again, and copies the values between them.
void HostMemory::copy_state_to(HostMemory& memory) const {
  int64_t copied = 0;
  const auto copy_until = [&](int64_t end) {
    copy_bytes(memory.addresses().state + copied, addresses().state + copied, end - copied);
    copied = end;
  };
  for (const auto& [offset, mapped] : files_) {
    if (!memory.map_state(mapped.range, mapped.file)) continue;
    copy_until(offset);
    copied = offset + mapped.range.bytes;
  }
  copy_until(regions().state);
}

/// The old and the new arena exist at the same time, but their untouched pages take no physical
/// memory.
std::shared_ptr<PlaceMemory> HostMemory::reallocate(const RegionSizes& regions) {
  const int64_t bytes = regions.total_bytes();
  Arena arena = std::exchange(prepared_, Arena());
  if (bytes <= arena.size()) {
    arena.shrink(bytes);
  } else {
    arena = Arena();  // frees the prepared memory first
    arena = Arena(bytes);
  }
  const std::shared_ptr<HostMemory> memory(new HostMemory(regions, std::move(arena)));
  copy_state_to(*memory);
  for (size_t slot = 0; slot < 2; ++slot) {
    copy_bytes(memory->addresses().slots.outputs[slot], addresses().slots.outputs[slot],
               this->regions().outputs);
  }
  memory->reports_ = reports_;
  return memory;
}

}  // namespace fluid
