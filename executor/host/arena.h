#pragma once

#include <cstddef>
#include <cstdint>
#include <thread>

#include "executor/device/state_file.h"

namespace fluid {

/// Zero-initialised host memory, aligned to 2 MiB. Backed by huge pages if the operating system
/// permits. An arena of 0 bytes has a valid address too. The constructor throws OutOfMemory if the
/// system has too little memory.
class Arena {
 public:
  Arena() = default;
  explicit Arena(int64_t bytes);
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;

  /// Starts a thread that prefaults the bytes [begin, end): backs them with physical memory, which
  /// otherwise happens page by page at the first use. Does nothing if the system cannot do so, and
  /// on a machine with several NUMA nodes, where the thread that uses a page first should place it.
  void prefault(int64_t begin, int64_t end);
  /// Replaces the bytes of `range` by those of `file`, copy-on-write: processes share the pages
  /// that none of them writes. `range` must be aligned to kMapAlignment. Returns false, and changes
  /// nothing, if the system cannot map the file.
  bool map(const StateRange& range, const StateFile& file);
  /// Reduces the size to `bytes`, and returns the rest to the system.
  void shrink(int64_t bytes);

  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }
  int64_t resident_bytes() const;  ///< bytes that are backed by physical memory

 private:
  void stop_prefaulting();

  std::byte* data_ = nullptr;
  int64_t size_ = 0;
  void* mapping_ = nullptr;
  size_t mapped_ = 0;
  int64_t prefaulted_ = 0;    ///< end of the bytes that `prefaulting_` backs with physical memory
  std::jthread prefaulting_;  ///< not joinable before prefault()
};

}  // namespace fluid
