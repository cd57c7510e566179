#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Definition of attribute "axis", which may not be the batch dimension.
AttrDef axis_attr(const std::string& doc, int64_t fallback);
/// Returns attribute "axis" of a tensor of this shape as a non-negative index. Throws UserError (by
/// c.fail()) when it is out of range or the batch dimension.
int64_t axis_within(const InferCtx& c, const Shape& shape);
/// Like the function above, for an op that has been checked.
int64_t axis_within(const Attrs& attrs, const Shape& shape);

/// Throws UserError (by c.fail()) unless `index` is an integer tensor of x's shape except along
/// `axis`.
void require_index_along(const InferCtx& c, const Type& x, const Type& index, int64_t axis);

}  // namespace fluid
