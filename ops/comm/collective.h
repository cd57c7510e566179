#pragma once

#include <cstdint>
#include <string>

#include "ops/op_def.h"

namespace fluid {

/// Kind of collective communication.
enum class CollectiveKind : uint8_t {
  all_reduce,      ///< sum over the ranks
  reduce_scatter,  ///< each rank gets its shard of the sum
  all_gather,      ///< concatenates the shards of the ranks
};
/// Returns the kind of a collective op.
CollectiveKind collective_kind(const ir::Op& op);

/// OpDef of a collective op on a bucket of float tensors. The tensors have one dtype and no batch
/// dimension. There is one result per operand; `result` describes each result. The op has no
/// gradient, but the caller may set `grad`.
OpDef collective_def(const std::string& name, const std::string& doc, const PortDef& result);

}  // namespace fluid
