#pragma once

#include <cstdint>
#include <string>

#include "ops/op_def.h"

namespace fluid {

/// The collective that an CollectiveOp op runs on its bucket.
enum class CollectiveKind : uint8_t {
  sum,      ///< all_reduce
  scatter,  ///< reduce_scatter
  gather,   ///< all_gather
};
CollectiveKind collective_kind(const ir::Op& op);

/// OpDef of a collective on a bucket of float tensors that have one dtype and no batch dimension.
/// `result` describes the result of each operand. The op has no gradient; the caller may set
/// `grad`.
OpDef collective_op(const std::string& name, const std::string& doc, const PortDef& result);

}  // namespace fluid
