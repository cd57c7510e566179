#pragma once

#include <cstdint>
#include <span>

#include "ops/comm/collective.h"
#include "passes/memory_plan.h"

namespace fluid {

/// How a call of a step relates to collectives: the call is a collective, waits for collectives, or
/// neither.
struct CollectiveRole {
  /// Element count of the collective, which runs in place on buffer 0 in the dtype of operand 0.
  /// -1: the call is not a collective.
  int64_t elements = -1;
  CollectiveKind kind = CollectiveKind::all_reduce;
  /// Number of collectives to wait for: the first `awaited_collectives` of the step must complete
  /// before the call.
  size_t awaited_collectives = 0;
  /// Whether the call is a collective, or depends on the result of a collective.
  bool depends_on_collective = false;
  bool is_collective() const { return elements >= 0; }
};

/// Returns the element count and kind of the collective `op`.
CollectiveRole collective_role(const MemoryPlan& plan, const ir::Op& op);

/// One of the calls that a step makes: its op, and its role, which complete_collective_roles()
/// fills in.
struct CallWithRole {
  const ir::Op* op = nullptr;
  CollectiveRole* role = nullptr;
};
/// Sets `awaited_collectives` and `depends_on_collective` in the role of each call. `calls` must be
/// in execution order. Returns the number of collectives.
size_t complete_collective_roles(std::span<const CallWithRole> calls);

}  // namespace fluid
