#pragma once

#include <span>

#include "executor/gpu/gpu.h"

namespace fluid {

/// Random data for timing: computing with zeros takes less power, so a GPU runs faster on them.
/// Read as floats of any width, the values are finite, of both signs, and at most 2 in magnitude.
class GpuNoise {
 public:
  explicit GpuNoise(const Gpu& gpu);
  /// Queues filling `memory`. This object must live until the work is done.
  void fill(const GpuStream& stream, std::span<std::byte> memory) const;

 private:
  const Gpu& gpu_;
  GpuMemory host_;
};

}  // namespace fluid
