#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Infers the result types of an op by OpDef::infer. If a type depends on the symbolic length
/// kLength, runs `infer` for two concrete lengths and fits each extent by a constant times a power
/// of the length. `infer` therefore sees only constant and batch extents. Throws UserError if
/// `infer` rejects the operands for either length. Also throws if the fit fails, as for the extent
/// length - 1.
std::vector<Type> infer_result_types(const OpDef& def, const std::vector<Type>& in,
                                     const Attrs& attrs, const Loc& loc);

}  // namespace fluid
