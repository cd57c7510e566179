#include "ops/elementwise.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "ops/reduction.h"

namespace fluid {
namespace {

std::vector<Type> infer_norm_l2(const InferCtx& c) {
  require_float(c, 0);
  return infer_reduction(c);
}

Values expand_norm_l2(const ExpandCtx& c) {
  const Value squares = internal::sum_squares(
      c.in(0),
      {.axes = c.attr<std::vector<int64_t>>("axes"), .keep_dims = c.attr<bool>("keep_dims")});
  return {cast(sqrt(squares), c.out_type(0).dtype)};
}

Values norm_l2_grad(const GradCtx& c) {
  const Value x = c.in(0), y = c.out(0), zero = scalar_like(y, 0);
  const Value scale = where(equal(y, zero), zero, c.dout(0) / y);
  return {x * unsqueeze_axes(scale, x.shape(), c.attrs())};
}

}  // namespace

OpDef norm_l2_op() {
  return OpDef{
      .name = "norm_l2",
      .doc =
          "L2 norm along `axes`: the square root of the sum of squares. The gradient of a norm "
          "that is 0 is 0.",
      .inputs = {{"x", "float tensor"}},
      .attrs = reduction_attrs(),
      .outputs = {{"y", "x's dtype"}},
      .infer = infer_norm_l2,
      .grad = GradFn(norm_l2_grad),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = [](const CostCtx& c) { return Cost{.flops = 2 * c.numel_in(0) + c.numel_out()}; },
      .in_place = {},
      .lower = Expand{expand_norm_l2},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
