#pragma once

#include "ops/kernel_writer.h"

namespace fluid {

/// Definitions of attributes "axis", "exclusive" and "reverse" of a cumulative op. `result`, "sum"
/// or "product", names the result in their doc strings.
std::vector<AttrDef> cumulative_attrs(const std::string& result);

/// Type inference of a cumulative op: returns the type of operand 0, which must be numeric.
std::vector<Type> infer_cumulative(const InferCtx& c);

/// Lowering of a cumulative op. Element t of the result combines the elements up to t along "axis".
Loops cumulative_lowering(Combine combine);

/// Shifts the elements of `v` by `by` (1 or -1) positions along `axis`: element t is v[t - by], or
/// 0 where v has no such element.
Value shift(Value v, int64_t axis, int64_t by);

}  // namespace fluid
