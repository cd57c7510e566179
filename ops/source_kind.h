#pragma once

#include <string_view>

#include "ir/graph.h"

namespace fluid {

/// Kind of a source op.
enum class SourceKind : uint8_t {
  none,       ///< the op is not a source
  feed,       ///< op `data`: fed by the user each step
  parameter,  ///< op `param`: a model parameter
  state,      ///< op `state`: any other variable, such as an optimizer moment or a counter
  argument,   ///< op `arg` in the body of a fused op or scan: an operand of the fused op or scan
  carried,    ///< op `carried`: the value that op `carry` saved in the previous micro-batch
};
SourceKind source_kind(std::string_view op_name);
SourceKind source_kind(const ir::Op& op);

/// Name of the `state`, i64[3], that random ops read. Its elements are the seed, the run counter,
/// and the index of the batch's first sample in the global batch.
inline constexpr std::string_view kRandomState = "rng";

/// Whether the op is a variable, that is, a `param` or a `state`. The buffer of a variable keeps
/// its value between steps.
bool is_variable(const ir::Op& op);
/// Whether the op is a `state` with kCacheAttribute, such as a key-value cache.
bool is_cache(const ir::Op& op);
/// Whether the op is `carry`, which saves its operand for the next micro-batch.
bool is_carry(const ir::Op& op);

}  // namespace fluid
