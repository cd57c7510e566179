#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace fluid {

/// Bytes of each region of a session's memory.
struct Regions {
  int64_t state = 0;
  int64_t feeds = 0;    ///< of one slot
  int64_t outputs = 0;  ///< of one of two slots
  int64_t transient = 0;
  int feed_slots = 1;  ///< or 2
  int64_t slots() const { return feed_slots * feeds + 2 * outputs; }
  int64_t total() const { return state + slots() + transient; }
  bool operator==(const Regions&) const = default;
};

/// Where the slots are. Steps that take turns find their feeds and outputs in them.
struct SlotPlaces {
  std::array<std::byte*, 2> feeds = {};  ///< the second null where there is one
  std::array<std::byte*, 2> outputs = {};
};
/// The slots for feeds, then those for outputs, from `begin` on.
SlotPlaces slots_at(std::byte* begin, const Regions& regions);

/// Where a step's memory is, for its place. Addresses stay until the next bind.
struct Memory {
  std::byte* state = nullptr;  ///< variables lie at their table's offsets
  SlotPlaces slots;
  std::byte* transient = nullptr;
  /// Where the host writes feeds and reads outputs: the slots themselves where the host reaches
  /// them.
  SlotPlaces host_slots;
  /// Where a step leaves its report (step_report.h) for the host, by its slot for outputs.
  std::array<std::byte*, 2> reports = {};
  /// On a place whose steps end after they were begun: a word that is not 0 while no step may
  /// change variables, because one was refused.
  std::byte* refused = nullptr;
};

/// The regions, in order, from `begin` on.
Memory laid_out(std::byte* begin, const Regions& regions);

/// The memory of a session on its place, zeroed. Its owner makes sure that no step runs when it
/// goes, and that none is bound to it.
class PlaceMemory {
 public:
  explicit PlaceMemory(const Regions& regions) : regions_(regions) {}
  virtual ~PlaceMemory() = default;
  PlaceMemory(const PlaceMemory&) = delete;
  PlaceMemory& operator=(const PlaceMemory&) = delete;

  const Regions& regions() const { return regions_; }
  const Memory& at() const { return memory_; }
  virtual int64_t touched() const = 0;  ///< bytes used so far, where the system tells
  /// Whether addresses of the place are also the host's.
  virtual bool is_host() const = 0;
  /// To the host, from state, once the steps that were begun are done.
  virtual void read(void* to, const std::byte* from, int64_t bytes) const = 0;
  /// To state, before the next step.
  virtual void write(std::byte* to, const void* from, int64_t bytes) = 0;
  /// Makes sure that the host has `bytes` at `offset` of a slot for outputs, of a step that is
  /// done: a place may leave large outputs where they are until they are asked for.
  virtual void fetch(int slot, int64_t offset, int64_t bytes) const = 0;
  /// After a step that was refused, or failed: steps change variables again.
  virtual void allow_updates() = 0;
  /// Memory with other regions, none of them smaller, in the place of this one's, with the
  /// variables and the outputs that the host has, once the steps that were begun are done. Here
  /// nothing is left but these outputs. Throws DeviceError when there is not as much: this
  /// memory then holds what it held, perhaps at other addresses; or nothing, and is lost.
  virtual std::shared_ptr<PlaceMemory> grown(const Regions& regions) = 0;
  bool is_lost() const { return memory_.state == nullptr; }

 protected:
  Memory memory_;

 private:
  Regions regions_;
};

}  // namespace fluid
