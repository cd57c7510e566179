#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Returns the value of attribute `axis` as a non-negative index of a dimension of a tensor of
/// `rank` dimensions.
int64_t axis_of(const Attrs& attrs, int64_t rank);

/// Type inference of an op along attribute `axis` with one result, of the type of operand 0. Throws
/// UserError unless operand 0 is a float tensor and `axis` is one of its dimensions.
std::vector<Type> infer_along_axis(const InferCtx& c);

/// Whether operand 0 has extent 0 along attribute `axis`.
bool is_empty_along_axis(const ExpandCtx& c);

}  // namespace fluid
