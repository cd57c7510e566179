#pragma once

// Helpers that define reductions along axes.

#include "ops/functions.h"
#include "ops/ints.h"
#include "ops/op_def.h"

namespace fluid {

/// Returns `axes` as non-negative indices in ascending order, or all axes if `axes` is empty.
/// Throws UserError (by c.fail()) for an axis that is out of range or repeated.
Ints normalized_axes(const InferCtx& c, const Ints& axes, size_t rank);
/// Like normalized_axes(c, axes, rank), for axes that are known to be valid.
Ints normalized_axes(const Ints& axes, size_t rank);
/// Returns `axis` as a non-negative index. Throws UserError (by c.fail()) when it is out of range.
int64_t normalized_axis(const InferCtx& c, int64_t axis, size_t rank);

/// Returns the definitions of attributes "axes" and "keep_dims".
std::vector<AttrDef> reduction_attrs();

/// Returns `shape` without the dimensions `axes`, or, if `keep_dims`, with extent 1 in their place.
/// `axes` must be normalised (see normalized_axes()).
Shape reduced_shape(const Shape& shape, const Ints& axes, bool keep_dims);

/// Type inference of a reduction: returns the type of operand 0, reduced along attribute "axes".
/// Throws UserError unless operand 0 is a numeric tensor.
std::vector<Type> infer_reduction(const InferCtx& c);

/// Like infer_reduction(), but bools are reduced as i64. `op` is the name for error messages.
std::vector<Type> infer_arithmetic_reduction(std::string_view op, const InferCtx& c);

/// Like infer_reduction(), but also throws UserError if a reduced axis has extent 0, because the
/// maximum of no elements is undefined.
std::vector<Type> infer_extremum(const InferCtx& c);

/// OpDef of the maximum (`combine` is Combine::max) or minimum (Combine::min) along attribute
/// "axes".
OpDef reduction_extremum_def(std::string name, std::string doc, Combine combine);

/// OpDef of a reduction of a bool tensor along attribute "axes". `lowered` records the ops that
/// compute the result; `along` holds attributes "axes" and "keep_dims".
OpDef logical_reduction_def(std::string name, std::string doc,
                            std::function<Value(Value x, const SumAttrs& along)> lowered);

/// OpDef of an argmax or argmin along attribute "axis": the index of the first maximum of key(x).
OpDef arg_extremum_def(std::string name, std::string doc, std::function<Value(Value x)> key);

/// Returns a Reduce that combines body(x) over the elements x of operand 0 along attribute "axes".
Reduce reduce_along(Combine combine, std::function<Expr(const Expr&)> body);

/// Returns a Reduce that combines the elements of operand 0 along attribute "axes". Bools are
/// combined as i64.
Reduce arithmetic_reduction(Combine combine);

/// Reshapes `y` so that the reduced axes have extent 1. `y` is the reduction of a tensor of shape
/// `from`; the result broadcasts to `from`.
Value unsqueeze_axes(Value y, const Shape& from, const Attrs& attrs);

}  // namespace fluid
