#include "executor/place_memory.h"

namespace fluid {

Memory laid_out(std::byte* begin, const Regions& regions) {
  Memory memory;
  memory.state = begin;
  memory.slots = {begin + regions.state, begin + regions.state + regions.slot};
  memory.transient = memory.slots[1] + regions.slot;
  memory.host_slots = memory.slots;
  return memory;
}

}  // namespace fluid
