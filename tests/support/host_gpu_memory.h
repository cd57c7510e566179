#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace fluid::testing {

/// The memory of a GPU that the host stands in for. Only queued work can access it. Other accesses
/// are segmentation faults, as with a GPU.
class HostGpuMemory {
 public:
  explicit HostGpuMemory(int64_t bytes) : total_(bytes) {}
  ~HostGpuMemory();
  HostGpuMemory(const HostGpuMemory&) = delete;
  HostGpuMemory& operator=(const HostGpuMemory&) = delete;

  /// Returns null if there is not enough memory.
  void* allocate(int64_t bytes);
  void* allocate_host(int64_t bytes);
  /// Returns false for an address that was not allocated here.
  bool release(void* address);
  bool release_host(void* address);

  int64_t total() const { return total_; }
  int64_t free() const { return total_ - taken_; }
  /// Whether the bytes lie in allocated memory.
  bool contains(const void* address, int64_t bytes) const;
  /// Whether `address` lies in the GPU or host block that begins at `block`.
  bool is_within(const void* address, const void* block) const;
  /// Returns the begin and end of the GPU block that contains `address`; nulls if there is none.
  std::pair<const std::byte*, const std::byte*> block_of(const void* address) const;

  /// Makes the memory accessible for its lifetime.
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
  using Blocks = std::map<std::byte*, int64_t>;  ///< address -> requested bytes
  static bool holds(const Blocks& blocks, const void* address, int64_t bytes);
  void protect(int rights) const;

  int64_t total_, taken_ = 0;
  Blocks gpu_, host_;
};

}  // namespace fluid::testing
