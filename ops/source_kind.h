#pragma once

#include <string_view>

#include "ir/graph.h"

namespace fluid {

/// Where a value that no op computes comes from.
enum class SourceKind : uint8_t {
  none,       ///< the op is not a source
  feed,       ///< `data`: given by the user each step
  parameter,  ///< `param`: trained, saved
  state,      ///< `state`: moments, counters
  argument,   ///< `arg`: an operand of the op that holds this graph
  carried,    ///< `carried`: left by the slice of the batch before
};
SourceKind source_kind(std::string_view op_name);
SourceKind source_kind(const ir::Op& op);

/// The state that random ops read, i64[3]: seed, run counter, first global sample.
inline constexpr std::string_view kRandomState = "rng";

/// A parameter or a state: memory that outlives the step.
bool is_variable(const ir::Op& op);
/// `carry`: leaves its operand for the next slice of the batch.
bool is_carry(const ir::Op& op);

}  // namespace fluid
