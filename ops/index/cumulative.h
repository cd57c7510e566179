#pragma once

#include "ops/kernel_writer.h"

namespace fluid {

/// Definitions of attributes "axis", "exclusive" and "reverse" of a cumulative op. `result` names
/// the combined value: "sum" or "product".
std::vector<AttrDef> cumulative_attrs(const std::string& result);

/// Type inference of a cumulative op: the type of operand 0, a numeric tensor.
std::vector<Type> infer_cumulative(const InferCtx& c);

/// Lowering of a cumulative op: each element of a line along "axis" is combined with the elements
/// before it.
Loops cumulative_lowering(Combine combine);

}  // namespace fluid
