#pragma once

#include <cstdint>
#include <string>

#include "ops/op_def.h"

namespace fluid {

/// What an Exchange op does with its bucket.
enum class ExchangeKind : uint8_t {
  sum,      ///< all_reduce
  scatter,  ///< reduce_scatter
  gather,   ///< all_gather
};
ExchangeKind exchange_kind(const ir::Op& op);

/// An op that exchanges a bucket of floats of one dtype and known size, and gives `result` of each.
/// It has no gradient unless it is given one.
OpDef exchange_op(const std::string& name, const std::string& doc, const PortDef& result);

}  // namespace fluid
