#include "executor/device/place_memory.h"

namespace fluid {

SlotAddresses slot_addresses(std::byte* begin, const RegionSizes& regions) {
  std::byte* outputs = begin + regions.feed_slots * regions.feeds;
  return {.feeds = {begin, regions.feed_slots > 1 ? begin + regions.feeds : nullptr},
          .outputs = {outputs, outputs + regions.outputs}};
}

MemoryAddresses region_addresses(std::byte* begin, const RegionSizes& regions) {
  MemoryAddresses memory;
  memory.state = begin;
  memory.slots = slot_addresses(begin + regions.state, regions);
  memory.transient = memory.slots.outputs[1] + regions.outputs;
  memory.host_slots = memory.slots;
  return memory;
}

}  // namespace fluid
