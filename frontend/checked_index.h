#pragma once

// Integers that a step rejects where they are out of range. Not part of the public API.

#include "ir/graph.h"

namespace fluid {

/// Returns `index`, integers of any shape, as i64. A step with an element outside [0, extent) fails
/// like one with such an index of gather().
Value checked_index(Value index, Dim extent, const Loc& loc);

/// Returns `lengths`, integers of any shape, as i64. A step with an element outside [0, limit]
/// fails, as with checked_index(). `limit` may be the length of a step, kLength.
Value checked_lengths(Value lengths, Dim limit, const Loc& loc);

/// Returns bool [steps, N, 1]: whether step t is within the length of sequence n. `lengths`:
/// integers [N], checked by checked_lengths().
Value steps_within(Value lengths, Dim steps, const Loc& loc);

}  // namespace fluid
