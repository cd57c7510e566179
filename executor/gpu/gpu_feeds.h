#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "executor/device/place_memory.h"
#include "executor/gpu/open_gpu.h"

namespace fluid {

/// Bytes of a slot.
struct Stretch {
  int64_t offset = 0, bytes = 0;
};

/// In order, and as few as hold them all: what lies between two values is their padding.
std::vector<Stretch> joined(std::vector<Stretch> stretches);

/// Brings feeds to the GPU's slots beside the steps, on a stream of its own: those of a step are
/// there when the step before it ends. One for all executables of a GPU.
class GpuFeeds {
 public:
  explicit GpuFeeds(std::shared_ptr<const OpenGpu> gpu);

  /// Queues the copy of what the host has in its slot, once no step reads the GPU's any more; steps
  /// that are queued from now on wait for it. The host leaves its slot alone until one of them is
  /// done.
  void copy(const Memory& memory, int slot, std::span<const Stretch> feeds) const;
  /// The step queued last reads the slot.
  void note_reader(int slot) const;

 private:
  std::shared_ptr<const OpenGpu> gpu_;
  GpuStream stream_;
  std::array<GpuEvent, 2> copied_, read_;  ///< by slot for feeds
};

}  // namespace fluid
