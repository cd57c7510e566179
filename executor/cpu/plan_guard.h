#pragma once

#include <cstddef>
#include <vector>

#include "passes/memory_plan.h"

namespace fluid {

/// Verifies a memory plan while a step runs. Dead memory is the part of the transient region that
/// holds no live value. The guard fills dead memory with NaN, so a kernel that reads dead memory
/// computes NaN. After each op, the guard detects writes to dead memory.
class PlanGuard {
 public:
  /// `op_count`: number of ops in the main graph.
  PlanGuard(const MemoryPlan& plan, int op_count);
  void bind(std::byte* transient) { transient_ = transient; }
  /// Fills dead memory with NaN before the first op.
  void begin_step() { poison_dead_memory(-1); }
  /// Throws InternalError if `op`, the op at `position`, has written to dead memory. Otherwise
  /// fills the memory that is dead during the next op with NaN.
  void check_after_op(int position, const ir::Op& op);

 private:
  /// A range of byte offsets in the transient region.
  struct ByteRange {
    int64_t begin;
    int64_t end;
  };
  void poison_dead_memory(int position);
  /// Returns the byte ranges that hold no live value during the op at `position`, in ascending
  /// order.
  std::vector<ByteRange> dead_ranges(int position) const;

  const MemoryPlan& plan_;
  int op_count_;
  std::byte* transient_ = nullptr;
};

}  // namespace fluid
