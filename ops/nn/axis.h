#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Returns attribute `axis` as a non-negative dimension index of a tensor of rank `rank`.
int64_t axis_of(const Attrs& attrs, int64_t rank);

/// Type inference of an op along attribute `axis`. The only result has the type of operand 0.
/// Throws UserError unless operand 0 is a float tensor and `axis` is one of its dimensions.
std::vector<Type> infer_along_axis(const InferCtx& c);

/// Whether operand 0 has extent 0 along attribute `axis`.
bool is_empty_along_axis(const ExpandCtx& c);

}  // namespace fluid
