#pragma once

#include <cstdint>

#include "ops/op_def.h"

namespace fluid {

/// What an Exchange op does with its bucket.
enum class ExchangeKind : uint8_t {
  sum,      ///< all_reduce
  scatter,  ///< reduce_scatter
  gather,   ///< all_gather
};
ExchangeKind exchange_kind(const ir::Op& op);

/// The results of an Exchange op: its operands', which are floats of one dtype and known size.
std::vector<Type> infer_exchange(const InferCtx& c);

}  // namespace fluid
