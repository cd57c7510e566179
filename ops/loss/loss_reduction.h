#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Attribute `reduction` of a loss: "none", "mean" or "sum" over all elements of the loss. The
/// compiler can compute a mean or sum in micro-batches and in shards of the batch.
AttrDef reduction_attr();

/// Returns the type of a loss whose elements have type `elements`, after the reduction. Throws
/// UserError unless attribute `reduction` is one of the three values.
Type reduced_loss_type(const InferCtx& c, const Type& elements);

/// Applies attribute `reduction` to the elements of a loss and casts the result to `dtype`.
Value reduced_loss(Value elements, const Attrs& attrs, DType dtype);

/// Returns the gradient of the elements of a loss, in the compute dtype. This is `dloss`, divided
/// by the number of elements if `reduction` is "mean". It broadcasts to `elements`, the shape of
/// the loss before the reduction.
Value gradient_of_elements(Value dloss, const Shape& elements, const Attrs& attrs);

}  // namespace fluid
