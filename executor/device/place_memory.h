#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace fluid {

/// Sizes in bytes of the regions of a session's memory.
struct Regions {
  int64_t state = 0;
  int64_t feeds = 0;    ///< size of one feed slot
  int64_t outputs = 0;  ///< size of one of the two output slots
  int64_t transient = 0;
  int feed_slots = 1;  ///< 1 or 2
  int64_t slots() const { return feed_slots * feeds + 2 * outputs; }
  int64_t total() const { return state + slots() + transient; }
  bool operator==(const Regions&) const = default;
};

/// Addresses of the slots. Consecutive steps alternate between them.
struct SlotPlaces {
  std::array<std::byte*, 2> feeds = {};  ///< the second is null when there is one feed slot
  std::array<std::byte*, 2> outputs = {};
};
/// The feed slots from `begin` on, followed by the output slots.
SlotPlaces slots_at(std::byte* begin, const Regions& regions);

/// Addresses that a step runs on, as its place sees them. They are constant until the next bind().
struct Memory {
  std::byte* state = nullptr;  ///< variables lie at the offsets in their table
  SlotPlaces slots;
  std::byte* transient = nullptr;
  /// Where the host writes feeds and reads outputs: the slots themselves if the host can address
  /// them, otherwise staging copies.
  SlotPlaces host_slots;
  /// Where a step writes its report (step_report.h) for the host, by output slot.
  std::array<std::byte*, 2> reports = {};
  /// On a place with asynchronous steps: the rejection flag. While it is not 0, a step was rejected
  /// and later steps change no variable.
  std::byte* refused = nullptr;
};

/// Lays out the regions consecutively from `begin` on.
Memory laid_out(std::byte* begin, const Regions& regions);

/// The memory of a session on its place, zeroed at first. No step may be running or bound to it
/// when it is destroyed.
class PlaceMemory {
 public:
  explicit PlaceMemory(const Regions& regions) : regions_(regions) {}
  virtual ~PlaceMemory() = default;
  PlaceMemory(const PlaceMemory&) = delete;
  PlaceMemory& operator=(const PlaceMemory&) = delete;

  const Regions& regions() const { return regions_; }
  const Memory& at() const { return memory_; }
  virtual int64_t touched() const = 0;  ///< bytes that the system has backed with memory so far
  /// Whether the host can dereference addresses of this place.
  virtual bool is_host() const = 0;
  /// Copies `bytes` from the state region to the host, after all steps in flight.
  virtual void read(void* to, const std::byte* from, int64_t bytes) const = 0;
  /// Copies `bytes` into the state region, before the next step.
  virtual void write(std::byte* to, const void* from, int64_t bytes) = 0;
  /// Makes `bytes` at `offset` of output slot `slot` available to the host, after the step is done.
  /// A place may leave large outputs on the device until they are fetched.
  virtual void fetch(int slot, int64_t offset, int64_t bytes) const = 0;
  /// Clears the rejection flag after a rejected or failed step. While the flag is set, steps with
  /// data checks change no variable.
  virtual void allow_updates() = 0;
  /// Replaces this memory by one with the given regions, none of them smaller. Variables and the
  /// host's outputs move along; this object keeps only its outputs. No step may be in flight.
  /// Throws DeviceError when there is too little memory. This object then holds its old content,
  /// perhaps at other addresses, or nothing: see is_lost().
  virtual std::shared_ptr<PlaceMemory> grown(const Regions& regions) = 0;
  bool is_lost() const { return memory_.state == nullptr; }

 protected:
  Memory memory_;

 private:
  Regions regions_;
};

}  // namespace fluid
