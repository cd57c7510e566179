#pragma once

#include <cstdint>
#include <span>

#include "ops/comm/exchange.h"
#include "passes/memory_plan.h"

namespace fluid {

/// How a call of a step list relates to the collectives in the list.
struct ExchangeRole {
  /// If >= 0: the call is a collective on buffer 0, of this many elements of operand 0's dtype.
  int64_t elements = -1;
  ExchangeKind kind = ExchangeKind::sum;
  /// Number of collectives, from the first on, that must complete before the call.
  size_t awaits = 0;
  bool of_sums = false;  ///< the call is a collective, or depends on the result of one
  bool exchanges() const { return elements >= 0; }
};

/// The role of a collective: its element count and kind.
ExchangeRole exchange_of(const MemoryPlan& plan, const ir::Op& op);

struct RelatedCall {
  const ir::Op* op = nullptr;
  ExchangeRole* role = nullptr;
};
/// Sets `awaits` and `of_sums` of all calls, which are in execution order. Returns the number of
/// collectives.
size_t relate_exchanges(std::span<const RelatedCall> calls);

}  // namespace fluid
