#pragma once

#include "tests/support/random_sources.h"

namespace fluid::testing {

/// Records an op, or a few, of the vocabulary on the float tensor `x`, whose rank is not 0, and
/// returns the result. `partner` returns a value that broadcasts with its argument. Throws
/// UserError if `x` does not fit the op that chance chose. Leaves out ops whose results jump
/// (floor, sign), because rounding errors would decide on which side they are.
Value random_op(RandomSources& sources, Value x, const std::function<Value(Value)>& partner);

}  // namespace fluid::testing
