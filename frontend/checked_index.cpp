#include "frontend/checked_index.h"

#include "ops/functions.h"
#include "ops/operators.h"

namespace fluid {

Value checked_index(Value index, Dim extent, const Loc& loc) {
  const Value all = arange(*index.op()->graph(), {.type = Type{i64, {extent}, {}}}, loc);
  return gather(all, index, {}, loc);
}

/// limit + 1 is no extent if `limit` is kLength. The checked index is then that of the last
/// element. Length 0 has no last element. A negative length is its own, invalid index.
Value checked_lengths(Value lengths, Dim limit, const Loc& loc) {
  if (limit.is_constant()) return checked_index(lengths, limit.size + 1, loc);
  const Value length = cast(lengths, i64, loc);
  const Value zero = scalar_like(length, 0), one = scalar_like(length, 1);
  const Value index = where(less(length, zero, loc), length, maximum(length - one, zero, loc), loc);
  const Value last = checked_index(index, limit, loc);
  return where(greater(length, zero, loc), last + one, zero, loc);
}

Value steps_within(Value lengths, Dim steps, const Loc& loc) {
  const Value t = arange(*lengths.op()->graph(), {.type = Type{i64, {steps}, {}}}, loc);
  const Value length = checked_lengths(lengths, steps, loc);
  return unsqueeze(less(unsqueeze(t, {.axes = {1}}, loc), length, loc), {.axes = {2}}, loc);
}

}  // namespace fluid
