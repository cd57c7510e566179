#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "executor/device/place_memory.h"
#include "executor/gpu/open_gpu.h"

namespace fluid {

/// A byte range of a slot.
struct ByteRange {
  int64_t offset = 0, bytes = 0;
};

/// Sorts `stretches` and merges neighbours that are separated only by padding.
std::vector<ByteRange> joined(std::vector<ByteRange> stretches);

/// Copies feeds to the GPU on a stream of its own, concurrently with the previous step. One per
/// GPU.
class GpuFeeds {
 public:
  explicit GpuFeeds(std::shared_ptr<const OpenGpu> gpu);

  /// Queues the copy of the host's feed slot, after the last step that reads the GPU's slot. Later
  /// steps wait for the copy. The host must not change its slot before one of these steps is done.
  void copy(const Memory& memory, int slot, std::span<const ByteRange> feeds) const;
  /// Records that the step queued last reads `slot`.
  void note_reader(int slot) const;

 private:
  std::shared_ptr<const OpenGpu> gpu_;
  GpuStream stream_;
  std::array<GpuEvent, 2> copied_, read_;  ///< by feed slot
};

}  // namespace fluid
