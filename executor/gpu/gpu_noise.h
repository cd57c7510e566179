#pragma once

#include <span>

#include "executor/gpu/gpu.h"

namespace fluid {

/// Numbers as a step may have them, for what is timed: a GPU that computes with zeros needs less
/// power, and is faster. Read as floats of any type they are finite, of both signs, with random
/// bits, and not larger than 2.
class GpuNoise {
 public:
  explicit GpuNoise(const Gpu& gpu);
  /// Queues it. The noise must live until that is done.
  void fill(const GpuStream& stream, std::span<std::byte> memory) const;

 private:
  const Gpu& gpu_;
  GpuMemory host_;
};

}  // namespace fluid
