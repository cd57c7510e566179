#include "executor/cpu/host_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "executor/device/out_of_memory.h"

namespace fluid {
namespace {

constexpr int64_t kWorthAThread = int64_t{16} << 20;  // bytes that take longer than to start one
// The old arena is counted beside the expected one, unless it is smaller by this factor.
constexpr int64_t kFarSmaller = 8;
// The programs of other steps may need more than the expected memory. Untouched pages take no
// physical memory.
constexpr int64_t kSlack = 2;

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

void HostMemory::expect(const RegionSizes& regions) {
  const int64_t bytes = regions.total_bytes();
  const bool is_first = arena_.size() < bytes / kFarSmaller;
  if (!is_first || bytes < kWorthAThread || bytes <= expected_.size()) return;
  try {
    expected_ = Arena(kSlack * bytes);
    expected_.populate(bytes);
  } catch (const OutOfMemory&) {
    // The memory limit of the process may permit `bytes`, but not the slack.
  }
}

/// The old and the new arena exist at the same time, but their untouched pages take no physical
/// memory.
std::shared_ptr<PlaceMemory> HostMemory::reallocate(const RegionSizes& regions) {
  const int64_t bytes = regions.total_bytes();
  Arena arena;
  if (bytes <= expected_.size()) {
    arena = std::move(expected_);
    arena.shrink(bytes);
  } else {
    arena = Arena(bytes);
  }
  expected_ = Arena();
  const std::shared_ptr<HostMemory> memory(new HostMemory(regions, std::move(arena)));
  copy_bytes(memory->addresses().state, addresses().state, this->regions().state);
  for (size_t slot = 0; slot < 2; ++slot) {
    copy_bytes(memory->addresses().slots.outputs[slot], addresses().slots.outputs[slot],
               this->regions().outputs);
  }
  memory->reports_ = reports_;
  return memory;
}

}  // namespace fluid
