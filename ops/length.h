#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Infers the result types of an op by OpDef::infer. If types depend on the length, runs `infer`
/// for two lengths and returns the extents as products of powers of the length. So the definition
/// of an op handles constants and the batch alone. Throws UserError if `infer` rejects the
/// operands for either length, or if an extent is no such product: a slice up to the last but one
/// element has length - 1 elements.
std::vector<Type> infer_result_types(const OpDef& def, const std::vector<Type>& in,
                                     const Attrs& attrs, const Loc& loc);

}  // namespace fluid
