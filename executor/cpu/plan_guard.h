#pragma once

#include <cstddef>
#include <vector>

#include "passes/memory_plan.h"

namespace fluid {

/// Checks a memory plan while a step runs: memory that holds nothing live is kept filled with NaN,
/// so that a read of it shows in the results and a write to it is found.
class PlanGuard {
 public:
  /// `positions`: the number of ops of main.
  PlanGuard(const MemoryPlan& plan, int positions);
  void bind(std::byte* transient) { transient_ = transient; }
  /// Before the first op.
  void start() { poison(-1); }
  /// After the op at `position`. Throws InternalError naming `op` when it wrote to dead memory.
  void after(int position, const ir::Op& op);

 private:
  struct Span {
    int64_t begin;
    int64_t end;
  };
  void poison(int position);
  std::vector<Span> dead_at(int position) const;  ///< no range is live: gaps, in order

  const MemoryPlan& plan_;
  int positions_;
  std::byte* transient_ = nullptr;
};

}  // namespace fluid
