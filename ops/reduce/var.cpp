#include "ops/operators.h"
#include "ops/reduce/variance.h"
#include "ops/reduction.h"

namespace fluid {

OpDef var_op() {
  return OpDef{
      .name = "var",
      .doc =
          "Variance along `axes`: the sum of squared differences from the mean, divided by the "
          "number of elements minus `correction`. NaN or infinite if this divisor is not positive.",
      .inputs = {{"x", "float tensor"}},
      .attrs = variance_attrs(),
      .outputs = {{"y", "x's dtype"}},
      .infer = infer_variance,
      .grad = GradFn([](const GradCtx& c) {
        const Value slope = scaled_deviation(c) * 2.0;
        const Value dy = cast(c.dout(0), slope.dtype());
        return Values{cast(slope * unsqueeze_axes(dy, slope.shape(), c.attrs()), c.in(0).dtype())};
      }),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = [](const CostCtx& c) { return Cost{.flops = 2 + 4 * c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        return Values{cast(variance_of(c), c.out_type(0).dtype)};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
