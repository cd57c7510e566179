#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "executor/device/state_file.h"

namespace fluid {

/// Sizes in bytes of the regions of a session's memory.
struct RegionSizes {
  int64_t state = 0;
  int64_t feeds = 0;    ///< size of one feed slot
  int64_t outputs = 0;  ///< size of one of the two output slots
  int64_t transient = 0;
  int feed_slots = 1;  ///< number of feed slots, 1 or 2
  int64_t slot_bytes() const { return feed_slots * feeds + 2 * outputs; }
  int64_t total_bytes() const { return state + slot_bytes() + transient; }
  bool operator==(const RegionSizes&) const = default;
};

/// Addresses of the feed slots and output slots. Consecutive steps alternate between the two output
/// slots. Steps on new batches also alternate between the feed slots if there are two.
struct SlotAddresses {
  std::array<std::byte*, 2> feeds = {};  ///< the second is null if there is a single feed slot
  std::array<std::byte*, 2> outputs = {};
};
/// Returns the addresses of the slots in memory that starts at `begin`: the feed slots, followed by
/// the output slots.
SlotAddresses slot_addresses(std::byte* begin, const RegionSizes& regions);

/// Device addresses of the regions of a session's memory. The addresses are constant until the next
/// Executable::bind().
struct MemoryAddresses {
  std::byte* state = nullptr;  ///< state region; Variable::offset is relative to its start
  SlotAddresses slots;
  std::byte* transient = nullptr;
  /// Addresses where the host writes feeds and reads outputs. Equal to `slots` if the host can
  /// address the device's memory; otherwise addresses of staging buffers.
  SlotAddresses host_slots;
  /// Host-readable buffer for the report of a step (step_report.h), one per output slot.
  std::array<std::byte*, 2> reports = {};
  /// Address of the rejection flag; null if steps are synchronous. A nonzero flag means that an
  /// earlier step was rejected. Later steps then change no variable.
  std::byte* rejection_flag = nullptr;
};

/// Returns the addresses of the regions, which lie consecutively in memory that starts at `begin`.
MemoryAddresses region_addresses(std::byte* begin, const RegionSizes& regions);

/// The memory of a session on its place, zero-initialised. Must not be destroyed while a step runs
/// on, or is bound to, this memory.
class PlaceMemory {
 public:
  explicit PlaceMemory(const RegionSizes& regions) : regions_(regions) {}
  virtual ~PlaceMemory() = default;
  PlaceMemory(const PlaceMemory&) = delete;
  PlaceMemory& operator=(const PlaceMemory&) = delete;

  const RegionSizes& regions() const { return regions_; }
  const MemoryAddresses& addresses() const { return memory_; }
  virtual int64_t resident_bytes() const = 0;  ///< bytes that are backed by physical memory
  /// Whether the host can dereference addresses of this memory.
  virtual bool is_host_accessible() const = 0;
  /// Copies `bytes` bytes from the state region to the host, ordered after all steps in flight.
  virtual void read(void* to, const std::byte* from, int64_t bytes) const = 0;
  /// Copies `bytes` bytes into the state region, ordered before the next step.
  virtual void write(std::byte* to, const void* from, int64_t bytes) = 0;
  /// Copies `bytes` bytes at `offset` of output slot `slot` from the device to the host's output
  /// slot. Does nothing if the bytes are already there. The step must be complete. A place may keep
  /// large outputs on the device until they are fetched.
  virtual void fetch(int slot, int64_t offset, int64_t bytes) const = 0;
  /// Clears the rejection flag after a rejected or failed step. While the flag is set, steps with
  /// data checks change no variable.
  virtual void clear_rejection_flag() = 0;
  /// Returns new memory with the given regions. No region may be smaller than before. Moves the
  /// variables and copies the host's output slots to the new memory. Afterwards, only the outputs
  /// of the old memory may be read. No step may be in flight. Throws DeviceError when there is too
  /// little memory. The old memory then keeps its content, perhaps at other addresses, unless
  /// is_lost().
  virtual std::shared_ptr<PlaceMemory> reallocate(const RegionSizes& regions) = 0;
  /// Prepares memory for a later reallocate() to about these regions, while the caller goes on.
  /// Regions of 0 bytes free the prepared memory. `maps_state`: whether the state region will be
  /// mapped from files, so that it needs no memory.
  virtual void prepare_for(const RegionSizes& /*regions*/, bool /*maps_state*/) {}
  /// Replaces the values of a range of the state region by those of `file`, copy-on-write.
  /// reallocate() maps the file again. `range` must be aligned to kMapAlignment. Returns false, and
  /// changes nothing, if the place cannot do so.
  virtual bool map_state(const StateRange& /*range*/, std::shared_ptr<const StateFile> /*file*/) {
    return false;
  }
  /// Must be called before the values of a mapped range change, so that reallocate() copies them.
  /// Does nothing if no file is mapped at `offset`.
  virtual void detach_state_file(int64_t /*offset*/) {}
  /// Whether a failed reallocate() lost the content of the memory.
  bool is_lost() const { return memory_.state == nullptr; }

 protected:
  MemoryAddresses memory_;

 private:
  RegionSizes regions_;
};

}  // namespace fluid
