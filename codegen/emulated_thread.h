#pragma once

#include <cstdint>

namespace fluid {

/// What a GPU gives a thread, for device code that was compiled for the host: its table of buffers
/// ends with the address of this. All functions take the thread itself first.
struct EmulatedThread {
  int64_t thread;  ///< within its group (CUDA's block)
  int64_t group, groups;
  uint64_t* shared;  ///< memory that the group shares
  /// Waits for all of the `size` threads (a power of two) around this one; may be called by fewer
  /// than the group only when these call it together.
  void (*wait)(EmulatedThread*, int64_t size);
  /// The bits that thread `thread ^ distance` gives, by threads of one warp.
  uint64_t (*exchange)(EmulatedThread*, uint64_t bits, int64_t distance, int64_t size);
};

}  // namespace fluid
