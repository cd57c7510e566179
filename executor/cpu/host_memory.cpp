#include "executor/cpu/host_memory.h"

#include <algorithm>
#include <cstring>

namespace fluid {
namespace {

void copy_bytes(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace

HostMemory::HostMemory(const RegionSizes& regions)
    : PlaceMemory(regions), arena_(regions.total_bytes()) {
  memory_ = region_addresses(arena_.data(), regions);
  for (size_t slot = 0; slot < 2; ++slot) memory_.reports[slot] = reports_[slot].bytes.data();
}

void HostMemory::read(void* to, const std::byte* from, int64_t bytes) const {
  copy_bytes(to, from, bytes);
}

void HostMemory::write(std::byte* to, const void* from, int64_t bytes) {
  copy_bytes(to, from, bytes);
}

/// The old and the new arena exist at the same time, but their untouched pages take no physical
/// memory.
std::shared_ptr<PlaceMemory> HostMemory::reallocate(const RegionSizes& regions) {
  auto memory = std::make_shared<HostMemory>(regions);
  copy_bytes(memory->addresses().state, addresses().state, this->regions().state);
  for (size_t slot = 0; slot < 2; ++slot) {
    copy_bytes(memory->addresses().slots.outputs[slot], addresses().slots.outputs[slot],
               this->regions().outputs);
  }
  memory->reports_ = reports_;
  return memory;
}

}  // namespace fluid
