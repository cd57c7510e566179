#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace fluid::testing {

/// Memory of a GPU that is none. Only queued work can touch it: at any other time, reading or
/// writing it is a segmentation fault, as it would be with a GPU.
class HostGpuMemory {
 public:
  explicit HostGpuMemory(int64_t bytes) : total_(bytes) {}
  ~HostGpuMemory();
  HostGpuMemory(const HostGpuMemory&) = delete;
  HostGpuMemory& operator=(const HostGpuMemory&) = delete;

  /// Null when there is no room.
  void* allocate(int64_t bytes);
  void* allocate_host(int64_t bytes);
  /// False when it is no address that it gave.
  bool release(void* address);
  bool release_host(void* address);

  int64_t total() const { return total_; }
  int64_t free() const { return total_ - taken_; }
  /// Whether all of it lies in memory that was given and not returned.
  bool contains(const void* address, int64_t bytes) const;
  /// Whether an address lies in the block, of the GPU or the host, that begins there.
  bool is_within(const void* address, const void* block) const;
  /// The GPU's block that an address lies in, from its first byte to behind its last; nulls: none.
  std::pair<const std::byte*, const std::byte*> block_of(const void* address) const;

  /// Lets work touch it as long as it lives.
  class Opened {
   public:
    explicit Opened(HostGpuMemory& memory);
    ~Opened();
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

   private:
    HostGpuMemory& memory_;
  };

 private:
  using Blocks = std::map<std::byte*, int64_t>;  ///< bytes asked for
  static bool holds(const Blocks& blocks, const void* address, int64_t bytes);
  void protect(int rights) const;

  int64_t total_, taken_ = 0;
  Blocks gpu_, host_;
};

}  // namespace fluid::testing
