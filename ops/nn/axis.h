#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Attribute `axis` of an op on a tensor of `rank` dimensions, counted from the front.
int64_t axis_of(const Attrs& attrs, int64_t rank);

/// One result like operand 0, a float tensor that has attribute `axis`.
std::vector<Type> infer_along_axis(const InferCtx& c);

/// Whether operand 0 has no element along attribute `axis`, and so none at all.
bool is_empty_along_axis(const ExpandCtx& c);

}  // namespace fluid
