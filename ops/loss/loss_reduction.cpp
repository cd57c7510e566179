#include "ops/loss/loss_reduction.h"

#include "ops/internal_functions.h"
#include "ops/operators.h"

namespace fluid {

AttrDef reduction_attr() {
  return {"reduction", std::string("none"),
          "\"none\", or \"mean\" or \"sum\" over all elements of the loss"};
}

Type reduced_loss_type(const InferCtx& c, const Type& elements) {
  const std::string& reduction = c.attr<std::string>("reduction");
  c.require(reduction == "none" || reduction == "mean" || reduction == "sum",
            "reduction must be \"none\", \"mean\" or \"sum\", not \"" + reduction + "\"");
  return reduction == "none" ? elements : Type{elements.dtype, {}, {}};
}

Value reduced_loss(Value elements, const Attrs& attrs, DType dtype) {
  const std::string& reduction = attrs.get<std::string>("reduction");
  if (reduction == "mean") elements = mean(elements);
  if (reduction == "sum") elements = sum(elements);
  return cast(elements, dtype);
}

Value gradient_of_unreduced_loss(Value dloss, const Shape& elements, const Attrs& attrs) {
  const Value wide = cast(dloss, compute_dtype(dloss.dtype()));
  if (attrs.get<std::string>("reduction") != "mean") return wide;
  return wide / internal::numel(*dloss.op()->graph(), {.of = Type{wide.dtype(), elements, {}}});
}

}  // namespace fluid
