#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

namespace fluid::testing {

struct PtxThread;

/// Finds races between the threads of a launch: accesses to the same byte, at least one of which
/// changes it, that no barrier orders. Block barriers order the threads of a block, warp barriers
/// the threads of a warp; shuffles order no memory accesses. Ignores atomic accesses, for which any
/// order is right. Remembers only the last two readers of a byte.
class PtxRaces {
 public:
  /// Must be called for a read. Throws InternalError if another thread may write at the same time.
  void read(const PtxThread& t, const std::byte* at, size_t bytes);
  /// Must be called after a write. Throws InternalError if another thread may read the byte at the
  /// same time, or write another value.
  void written(const PtxThread& t, const std::byte* at, size_t bytes);
  /// Forgets the accesses to memory that gets a new owner, which does not see the old contents.
  void forget(std::span<const std::byte> memory);

 private:
  /// An access by a thread.
  struct Touch {
    bool made = false;
    uint32_t group = 0, number = 0;
    uint32_t group_waits = 0, warp_waits = 0;  ///< barriers that the thread had passed
  };
  struct Byte {
    Touch writer, readers[2];
    std::byte holds = {};
  };
  static constexpr uintptr_t kLine = 16;  // bytes that are found at once
  using Line = std::array<Byte, kLine>;

  static Touch touch_of(const PtxThread& t);
  static bool is_before(const Touch& touch, const PtxThread& t);
  static void require_order(const Touch& touch, const PtxThread& t, const char* what);
  template <class Visit>
  void for_each_byte(const std::byte* at, size_t bytes, Visit visit);

  std::unordered_map<uintptr_t, Line> lines_;
};

}  // namespace fluid::testing
