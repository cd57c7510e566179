#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Returns the attributes of a variance: the attributes of a reduction, and "correction".
std::vector<AttrDef> variance_attrs();
/// Type inference of a variance. Throws UserError unless operand 0 is a float tensor, and for a
/// correction beyond 2^53.
std::vector<Type> infer_variance(const InferCtx& c);

/// Returns the variance of operand 0 along attribute "axes", in the compute dtype. The variance of
/// n elements is the sum of squared differences from the mean, divided by max(0, n - correction).
/// It is NaN or infinite if the divisor is 0.
Value variance_of(const ExpandCtx& c);

/// Returns (x - mean(x)) / max(0, n - correction) for operand 0 = x, in the compute dtype. Twice
/// this value is the gradient of the variance.
Value scaled_deviation(const GradCtx& c);

}  // namespace fluid
