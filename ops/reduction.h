#pragma once

// What reductions along axes share.

#include "ops/ints.h"
#include "ops/op_def.h"

namespace fluid {

/// `axes` made non-negative and sorted; all of `rank` when empty. Throws UserError (through `c`)
/// when one is out of range or given twice.
Ints normal_axes(const InferCtx& c, const Ints& axes, size_t rank);
/// The same, for axes that infer has accepted.
Ints normal_axes(const Ints& axes, size_t rank);
/// One axis made non-negative. Fails when it is out of range.
int64_t normal_axis(const InferCtx& c, int64_t axis, size_t rank);

/// The attributes "axes" and "keep_dims".
std::vector<AttrDef> reduction_attrs();

/// `shape` with `axes` (normal) reduced: gone, or 1 when `keep_dims`.
Shape reduced_shape(const Shape& shape, const Ints& axes, bool keep_dims);

/// Operand 0's type reduced along attribute "axes"; its elements must be numbers.
std::vector<Type> infer_reduction(const InferCtx& c);

/// As infer_reduction; fails when there is nothing to reduce: a maximum of no elements.
std::vector<Type> infer_extremum(const InferCtx& c);

/// The gradient of max and min: the elements equal to the result share dy evenly, as in PyTorch.
Values extremum_grad(const GradCtx& c);

/// Reduces body(element of operand 0) along attribute "axes".
Reduce reduce_along(Combine combine, std::function<Expr(const Expr&)> body);

/// `y`, a reduction of a tensor of shape `from`, with the reduced axes back as 1: it broadcasts.
Value restore_axes(Value y, const Shape& from, const Attrs& attrs);

}  // namespace fluid
