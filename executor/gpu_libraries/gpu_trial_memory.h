#pragma once

#include <span>
#include <vector>

#include "executor/gpu_driver/gpu.h"

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

/// A buffer of a library task whose algorithms are tried.
struct TrialBuffer {
  std::span<std::byte> memory;
  bool needed = false;  ///< its content must be preserved, as a variable's
};

/// Moves buffers whose content is needed into `spare`, apart from all other buffers, as far as
/// there is room. `needed` is then false. Content of `spare` is lost.
void move_needed(std::vector<TrialBuffer>& buffers, std::span<std::byte> spare);

}  // namespace fluid
