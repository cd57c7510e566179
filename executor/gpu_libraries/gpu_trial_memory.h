#pragma once

#include <span>
#include <vector>

#include "executor/gpu_driver/gpu.h"

namespace fluid {

/// Random operands for timing algorithms. On zeros, measured times would be too short, because
/// computing on zeros takes less power. In every float dtype the values are finite, of both signs,
/// and below 2 in magnitude.
class GpuRandomData {
 public:
  explicit GpuRandomData(const Gpu& gpu);
  /// Queues a fill of `memory` with random data. The GpuRandomData must outlive the queued work.
  void fill(const GpuStream& stream, std::span<std::byte> memory) const;

 private:
  const Gpu& gpu_;
  GpuMemory host_;
};

/// A buffer on which the algorithms for a task are tried.
struct TrialBuffer {
  std::span<std::byte> memory;
  /// Whether trials must preserve the contents, for example because the memory holds a variable.
  bool preserve = false;
};

/// Moves each buffer whose `preserve` is set to memory in `spare` that overlaps no other buffer, if
/// there is room. After the move, the content of the buffer is undefined and its `preserve` is
/// false. The contents of `spare` may be overwritten.
void relocate_preserved(std::vector<TrialBuffer>& buffers, std::span<std::byte> spare);

}  // namespace fluid
