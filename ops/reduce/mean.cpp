#include "ops/elementwise.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "ops/reduction.h"

namespace fluid {
namespace {

std::vector<Type> infer_mean(const InferCtx& c) {
  require_float(c, 0);
  return infer_reduction(c);
}

/// Returns the number of elements that each mean averages, as a scalar of `dtype`. Computed at run
/// time if the batch dimension is reduced.
Value count(Value x, const Attrs& attrs, DType dtype) {
  Type reduced{dtype, {}, {}};
  for (const int64_t axis :
       normalized_axes(attrs.get<std::vector<int64_t>>("axes"), x.shape().size())) {
    reduced.shape.push_back(x.shape()[static_cast<size_t>(axis)]);
  }
  return internal::numel(*x.op()->graph(), {.of = reduced});
}

Values expand_mean(const ExpandCtx& c) {
  // A half-precision sum could overflow although the mean does not.
  const DType wide = compute_dtype(c.in(0).dtype());
  const SumAttrs along{.axes = c.attr<std::vector<int64_t>>("axes"),
                       .keep_dims = c.attr<bool>("keep_dims")};
  const Value total = sum(cast(c.in(0), wide), along);
  return {cast(total / count(c.in(0), c.attrs(), wide), c.in(0).dtype())};
}

Values mean_grad(const GradCtx& c) {
  const Value x = c.in(0);
  const DType wide = compute_dtype(x.dtype());  // f16 cannot represent counts above 65,504
  const Value share = cast(cast(c.dout(0), wide) / count(x, c.attrs(), wide), x.dtype());
  return {broadcast_to(unsqueeze_axes(share, x.shape(), c.attrs()), x.shape())};
}

}  // namespace

OpDef mean_op() {
  return OpDef{
      .name = "mean",
      .doc =
          "Mean along `axes`; NaN over zero elements. A mean over the batch divides by the batch "
          "size of the step.",
      .inputs = {{"x", "float tensor"}},
      .attrs = reduction_attrs(),
      .outputs = {{"y", "x's dtype"}},
      .infer = infer_mean,
      .grad = GradFn(mean_grad),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_in(0) + c.numel_out()}; },
      .in_place = {},
      .lower = Expand{expand_mean},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
