#pragma once

// Helpers of reductions along axes.

#include "ops/ints.h"
#include "ops/op_def.h"

namespace fluid {

/// `axes`, non-negative and sorted; all axes when empty. Throws UserError (through `c`) for an axis
/// that is out of range or repeated.
Ints normalized_axes(const InferCtx& c, const Ints& axes, size_t rank);
/// `axes`, non-negative and sorted; all axes when empty. The axes must be valid.
Ints normalized_axes(const Ints& axes, size_t rank);
/// `axis`, non-negative. Throws UserError (through `c`) when it is out of range.
int64_t normalized_axis(const InferCtx& c, int64_t axis, size_t rank);

/// Definitions of the attributes "axes" and "keep_dims".
std::vector<AttrDef> reduction_attrs();

/// `shape` without the (normalised) `axes`, or with extent 1 there when `keep_dims`.
Shape reduced_shape(const Shape& shape, const Ints& axes, bool keep_dims);

/// Operand 0's type reduced along attribute "axes". Fails for bool.
std::vector<Type> infer_reduction(const InferCtx& c);

/// Like infer_reduction, but fails for an empty axis: an empty maximum is undefined.
std::vector<Type> infer_extremum(const InferCtx& c);

/// OpDef of the largest (Combine::max) or smallest (Combine::min) element along attribute "axes".
OpDef reduced_extremum(std::string name, std::string doc, Combine which);

/// A Reduce of body(element of operand 0) along attribute "axes".
Reduce reduce_along(Combine combine, std::function<Expr(const Expr&)> body);

/// Reshapes `y`, a reduction of a tensor of shape `from`, so that reduced axes have extent 1. `y`
/// then broadcasts to `from`.
Value unsqueeze_axes(Value y, const Shape& from, const Attrs& attrs);

}  // namespace fluid
