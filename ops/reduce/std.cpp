#include "ops/operators.h"
#include "ops/reduce/variance.h"
#include "ops/reduction.h"

namespace fluid {

OpDef std_op() {
  return OpDef{
      .name = "std",
      .doc =
          "Standard deviation along `axes`: the square root of `var`. Its gradient is 0 where it "
          "is 0.",
      .inputs = {{"x", "float tensor"}},
      .attrs = variance_attrs(),
      .outputs = {{"y", "x's dtype"}},
      .infer = infer_variance,
      .grad = GradFn([](const GradCtx& c) {
        const Value slope = scaled_deviation(c);
        const Value y = cast(c.out(0), slope.dtype()), zero = scalar_like(y, 0);
        const Value share = where(equal(y, zero), zero, cast(c.dout(0), slope.dtype()) / y);
        return Values{
            cast(slope * unsqueeze_axes(share, slope.shape(), c.attrs()), c.in(0).dtype())};
      }),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = [](const CostCtx& c) { return Cost{.flops = 2 + 4 * c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        return Values{cast(sqrt(variance_of(c)), c.out_type(0).dtype)};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
