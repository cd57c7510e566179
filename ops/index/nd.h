#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Shapes of gather_nd and scatter_nd. x is [batch..., indexed..., slice...]. index is [batch...,
/// positions..., K], where K is the number of indexed dimensions. The slices at the positions are
/// [batch..., positions..., slice...].
struct NdView {
  Shape batch, indexed, slice, positions;
  Shape slices() const;  ///< shape of the slices: [batch..., positions..., slice...]
};

/// Definition of attribute "batch_dims".
AttrDef batch_dims_attr();
/// Returns the shapes for attribute "batch_dims" and operands 0 (x) and 1 (index). Calls c.fail(),
/// which throws UserError, if the shapes do not fit.
NdView require_nd(const InferCtx& c);
/// Like require_nd(), for an op that has already been checked.
NdView nd_view(const Attrs& attrs, const Shape& x, const Shape& index);

}  // namespace fluid
