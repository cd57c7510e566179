#include "ops/reduction.h"

namespace fluid {

OpDef count_nonfinite_op() {
  return OpDef{
      .name = "count_nonfinite",
      .doc = "Number of infinite or NaN elements along `axes`; exact up to 2^24.",
      .inputs = {{"x", "float tensor"}},
      .attrs = reduction_attrs(),
      .outputs = {{"y", "f32"}},
      .infer =
          [](const InferCtx& c) {
            c.require(is_float(c.in(0).dtype), "expects a float tensor, got " + c.in(0).str());
            std::vector<Type> out = infer_reduction(c);
            out[0].dtype = f32;
            return out;
          },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_in(0)}; },
      .in_place = {},
      .lower = reduce_along(Combine::sum,
                            [](const Expr& x) {
                              return scalar::select(scalar::unary(ScalarOp::isfinite, x),
                                                    Expr::constant(f32, 0), Expr::constant(f32, 1));
                            }),
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
