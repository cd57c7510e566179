#pragma once

#include <cstdint>
#include <span>

#include "ops/comm/exchange.h"
#include "passes/memory_plan.h"

namespace fluid {

/// What a call of a step list has to do with exchanges between processes.
struct ExchangeRole {
  int64_t elements = -1;  ///< when >= 0 it is one, of so many in buffer 0, of operand 0's dtype
  ExchangeKind kind = ExchangeKind::sum;
  size_t awaits = 0;     ///< exchanges that must be done first
  bool of_sums = false;  ///< it is one, or is made of one's results
  bool exchanges() const { return elements >= 0; }
};

/// That of an exchange.
ExchangeRole exchange_of(const MemoryPlan& plan, const ir::Op& op);

struct RelatedCall {
  const ir::Op* op = nullptr;
  ExchangeRole* role = nullptr;
};
/// Finds what the calls of a list, in their order, await and are made of. How many exchange.
size_t relate_exchanges(std::span<const RelatedCall> calls);

}  // namespace fluid
