#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Attribute `reduction` of a loss: "none", "mean" or "sum" over all elements of the loss. For
/// "mean" and "sum", the compiler can split the batch into micro-batches and shards.
AttrDef reduction_attr();

/// Returns the type of the reduced loss. `elements` is the type of the loss before the reduction.
/// Throws UserError unless attribute `reduction` is one of the three values.
Type reduced_loss_type(const InferCtx& c, const Type& elements);

/// Applies attribute `reduction` to the elements of a loss and casts the result to `dtype`.
Value reduced_loss(Value elements, const Attrs& attrs, DType dtype);

/// Returns the gradient of the unreduced loss, in the compute dtype. This is `dloss`, divided by
/// the number of elements if `reduction` is "mean". The result broadcasts to `elements`, the shape
/// of the unreduced loss.
Value gradient_of_unreduced_loss(Value dloss, const Shape& elements, const Attrs& attrs);

}  // namespace fluid
