#pragma once

#include <cstdint>
#include <span>

#include "ops/comm/collective.h"
#include "passes/memory_plan.h"

namespace fluid {

/// Whether a call of a step is a collective, and which collectives must complete before the call.
struct CollectiveRole {
  /// Element count of the collective, which runs in place on buffer 0 in the dtype of operand 0.
  /// -1: the call is not a collective.
  int64_t elements = -1;
  CollectiveKind kind = CollectiveKind::all_reduce;
  /// The first `awaited_collectives` collectives of the step must complete before the call.
  size_t awaited_collectives = 0;
  /// Whether the call is a collective, or depends on the result of a collective.
  bool depends_on_collective = false;
  bool is_collective() const { return elements >= 0; }
};

/// Returns the element count and kind of the collective `op`.
CollectiveRole collective_role(const MemoryPlan& plan, const ir::Op& op);

/// The op of a call, and the role that complete_collective_roles() updates.
struct CallWithRole {
  const ir::Op* op = nullptr;
  CollectiveRole* role = nullptr;
};
/// Sets `awaited_collectives` and `depends_on_collective` in the role of each call. `calls` must be
/// in execution order. Returns the number of collectives.
size_t complete_collective_roles(std::span<const CallWithRole> calls);

}  // namespace fluid
