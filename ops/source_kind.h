#pragma once

#include "ir/graph.h"

namespace fluid {

/// Where a value that no op computes comes from.
enum class SourceKind : uint8_t {
  none,       ///< the op is not a source
  feed,       ///< `data`: given by the user each step
  parameter,  ///< `param`: trained, saved
  state,      ///< `state`: moments, counters
  argument,   ///< `arg`: an operand of the op that holds this graph
};
SourceKind source_kind(const ir::Op& op);

/// A parameter or a state: memory that outlives the step.
bool is_variable(const ir::Op& op);

}  // namespace fluid
