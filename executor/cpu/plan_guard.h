#pragma once

#include <cstddef>
#include <vector>

#include "passes/memory_plan.h"

namespace fluid {

/// Checks a memory plan while a step runs. It fills memory without a live value with NaN. A read of
/// such memory shows in the results; a write to it is detected.
class PlanGuard {
 public:
  /// `positions` is the number of ops in main.
  PlanGuard(const MemoryPlan& plan, int positions);
  void bind(std::byte* transient) { transient_ = transient; }
  /// Fills dead memory with NaN. Call it before the first op.
  void start() { poison(-1); }
  /// Checks dead memory after `op`, the op at `position`, and fills it with NaN again. Throws
  /// InternalError naming `op` when the op wrote to dead memory.
  void after(int position, const ir::Op& op);

 private:
  struct Span {
    int64_t begin;
    int64_t end;
  };
  void poison(int position);
  std::vector<Span> dead_at(int position) const;  ///< gaps between live ranges, in order

  const MemoryPlan& plan_;
  int positions_;
  std::byte* transient_ = nullptr;
};

}  // namespace fluid
