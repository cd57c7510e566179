#pragma once

#include <cstdint>
#include <span>

#include "ops/comm/collective.h"
#include "passes/memory_plan.h"

namespace fluid {

/// How a call of a step list relates to the collectives in the list.
struct CollectiveRole {
  /// If >= 0: the call is a collective on buffer 0, of this many elements of operand 0's dtype.
  int64_t elements = -1;
  CollectiveKind kind = CollectiveKind::sum;
  /// Number of collectives, from the first on, that must complete before the call.
  size_t awaited_collectives = 0;
  bool depends_on_collective =
      false;  ///< the call is a collective, or depends on the result of one
  bool exchanges() const { return elements >= 0; }
};

/// The role of a collective: its element count and kind.
CollectiveRole collective_role(const MemoryPlan& plan, const ir::Op& op);

struct LinkedCall {
  const ir::Op* op = nullptr;
  CollectiveRole* role = nullptr;
};
/// Sets `awaited_collectives` and `depends_on_collective` of all calls, which are in execution
/// order. Returns the number of collectives.
size_t link_collectives(std::span<const LinkedCall> calls);

}  // namespace fluid
