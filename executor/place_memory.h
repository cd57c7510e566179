#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace fluid {

/// Bytes of each region of a session's memory.
struct Regions {
  int64_t state = 0;
  int64_t slot = 0;
  int64_t transient = 0;
  int64_t total() const { return state + 2 * slot + transient; }
  bool operator==(const Regions&) const = default;
};

/// Where a step's memory is, for its place. Addresses stay until the next bind.
struct Memory {
  std::byte* state = nullptr;            ///< variables lie at their table's offsets
  std::array<std::byte*, 2> slots = {};  ///< of feeds and outputs
  std::byte* transient = nullptr;
  /// Where the host writes feeds and reads outputs, laid out as the slots: these themselves where
  /// the host reaches them.
  std::array<std::byte*, 2> host_slots = {};
};

/// The regions, in order, from `begin` on.
Memory laid_out(std::byte* begin, const Regions& regions);

/// The memory of a session on its place, zeroed. Its owner makes sure that no step runs when it
/// goes.
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
  /// To the host, from state, once the steps that were run are done.
  virtual void read(void* to, const std::byte* from, int64_t bytes) const = 0;
  /// To state, before the next step.
  virtual void write(std::byte* to, const void* from, int64_t bytes) = 0;
  /// Takes over the variables and what the slots hold.
  virtual void take(const PlaceMemory& from) = 0;

 protected:
  Memory memory_;

 private:
  Regions regions_;
};

}  // namespace fluid
