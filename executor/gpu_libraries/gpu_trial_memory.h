#pragma once

#include <span>
#include <vector>

#include "executor/gpu_driver/gpu.h"

namespace fluid {

/// Random operands for timing algorithms. Times on operands of zeros would be too short, because a
/// GPU that computes on zeros draws less power and throttles less. In every float dtype, the values
/// have both signs and a magnitude below 2.
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
  /// Whether trials must preserve the contents, for example the value of a variable.
  bool preserve = false;
};

/// Moves each buffer with `preserve` into `spare`, if `spare` has enough free memory. Copies no
/// data: a moved buffer has undefined contents, and its `preserve` becomes false. Moved buffers
/// overlap no other buffer.
void move_preserved_buffers(std::vector<TrialBuffer>& buffers, std::span<std::byte> spare);

}  // namespace fluid
