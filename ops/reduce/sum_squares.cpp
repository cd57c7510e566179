#include "ops/reduction.h"

namespace fluid {

OpDef sum_squares_op() {
  return OpDef{
      .name = "sum_squares",
      .doc = "Sum of squares along `axes`, accumulated in f32 or wider.",
      .inputs = {{"x", "float tensor"}},
      .attrs = reduction_attrs(),
      .outputs = {{"y", "x's dtype; f32 if x has half precision"}},
      .infer =
          [](const InferCtx& c) {
            c.require(is_float(c.in(0).dtype), "expects a float tensor, got " + c.in(0).str());
            std::vector<Type> out = infer_reduction(c);
            out[0].dtype = compute_dtype(out[0].dtype);
            return out;
          },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = [](const CostCtx& c) { return Cost{.flops = 2 * c.numel_in(0)}; },
      .in_place = {},
      .lower = reduce_along(Combine::sum, [](const Expr& x) { return x * x; }),
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
