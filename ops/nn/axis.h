#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Attribute `axis` made non-negative, for a tensor of `rank` dimensions.
int64_t axis_of(const Attrs& attrs, int64_t rank);

/// Infers one result of operand 0's type. Fails unless it is a float tensor with dimension `axis`.
std::vector<Type> infer_along_axis(const InferCtx& c);

/// Whether operand 0 has extent 0 along attribute `axis`.
bool is_empty_along_axis(const ExpandCtx& c);

}  // namespace fluid
