#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

// tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2). For positive x, numerator and
// denominator are multiplied by e^-2x, so that no exponential overflows.
Expr mish_of(const Expr& x) {
  const Expr u = scalar::unary(ScalarOp::exp, -scalar::unary(ScalarOp::abs, x));
  const Expr positive = scalar::compare(ScalarOp::gt, x, Expr::constant(x.dtype(), 0));
  const Expr numerator = scalar::select(positive, 1.0 + 2.0 * u, u * (u + 2.0));
  const Expr two = Expr::constant(x.dtype(), 2);
  return x * (numerator / (numerator + scalar::select(positive, two * (u * u), two)));
}

}  // namespace

OpDef mish_op() {
  return OpDef{
      .name = "mish",
      .doc = "x * tanh(softplus(x)) (Misra, 2019).",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx& c) {
        const Value x = c.in(0), gate = tanh(softplus(x));
        return Values{c.dout(0) * (gate + x * sigmoid(x) * (1.0 - square(gate)))};
      }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(20),
      .in_place = {{0, 0}},
      .lower = map_unary(mish_of),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
