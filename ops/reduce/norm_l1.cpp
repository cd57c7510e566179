#include "ops/elementwise.h"
#include "ops/operators.h"
#include "ops/reduction.h"

namespace fluid {
namespace {

std::vector<Type> infer_norm_l1(const InferCtx& c) {
  require_float(c, 0);
  return infer_reduction(c);
}

}  // namespace

OpDef norm_l1_op() {
  return OpDef{
      .name = "norm_l1",
      .doc =
          "L1 norm along `axes`: the sum of absolute values. The gradient of an element that is 0 "
          "is 0.",
      .inputs = {{"x", "float tensor"}},
      .attrs = reduction_attrs(),
      .outputs = {{"y", "x's dtype"}},
      .infer = infer_norm_l1,
      .grad = GradFn([](const GradCtx& c) {
        const Value x = c.in(0);
        return Values{sign_of(x) * unsqueeze_axes(c.dout(0), x.shape(), c.attrs())};
      }),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = [](const CostCtx& c) { return Cost{.flops = 2 * c.numel_in(0)}; },
      .in_place = {},
      .lower =
          reduce_along(Combine::sum, [](const Expr& x) { return scalar::unary(ScalarOp::abs, x); }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
