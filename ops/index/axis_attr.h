#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Definition of attribute "axis". The axis must not be the batch dimension.
AttrDef axis_attr(const std::string& doc, int64_t fallback);
/// Returns attribute "axis" as a non-negative index into `shape`. Throws UserError (by c.fail())
/// when the axis is out of range or is the batch dimension.
int64_t nonnegative_axis(const InferCtx& c, const Shape& shape);
/// Like nonnegative_axis(c, shape), for an op whose attributes are known to be valid.
int64_t nonnegative_axis(const Attrs& attrs, const Shape& shape);

/// Throws UserError (by c.fail()) unless `index` is an integer tensor with the rank and the batch
/// dimension of `x`. Its extents must not exceed those of `x`, except along `axis`.
void require_index_along(const InferCtx& c, const Type& x, const Type& index, int64_t axis);

/// Whether `index` and `x` have equal extents except along `axis`.
bool equal_except_along(const Shape& index, const Shape& x, int64_t axis);

}  // namespace fluid
