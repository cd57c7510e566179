#pragma once

#include <string_view>

#include "ir/graph.h"

namespace fluid {

/// Kind of a source op.
enum class SourceKind : uint8_t {
  none,       ///< the op is not a source
  feed,       ///< `data`: fed by the user each step
  parameter,  ///< `param`: trained and saved
  state,      ///< `state`: optimizer moments, counters
  argument,   ///< `arg`: an operand of the op that owns this graph
  carried,    ///< `carried`: a value from the previous micro-batch
};
SourceKind source_kind(std::string_view op_name);
SourceKind source_kind(const ir::Op& op);

/// Name of the state that random ops read, i64[3]: seed, run counter, first global sample.
inline constexpr std::string_view kRandomState = "rng";

/// Whether the op is a parameter or a state: memory that outlives the step.
bool is_variable(const ir::Op& op);
/// Whether the op is `carry`, which hands its operand to the next micro-batch.
bool is_carry(const ir::Op& op);

}  // namespace fluid
