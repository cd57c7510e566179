#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace fluid {

/// What an Exchange op does with its bucket.
enum class ExchangeKind : uint8_t {
  sum,      ///< all_reduce
  scatter,  ///< reduce_scatter
  gather,   ///< all_gather
};
ExchangeKind exchange_kind(const ir::Op& op);

}  // namespace fluid
