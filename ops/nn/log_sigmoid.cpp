#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

// log(1 / (1 + e^-x)) = min(x, 0) - log1p(e^-|x|), which does not overflow.
Expr log_sigmoid_of(const Expr& x) {
  const Expr decay = scalar::unary(ScalarOp::exp, -scalar::unary(ScalarOp::abs, x));
  return scalar::min(x, Expr::constant(x.dtype(), 0)) - scalar::unary(ScalarOp::log1p, decay);
}

}  // namespace

OpDef log_sigmoid_op() {
  return OpDef{
      .name = "log_sigmoid",
      .doc = "log(sigmoid(x)), computed in a numerically stable form.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx& c) { return Values{c.dout(0) * sigmoid(-c.in(0))}; }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(24),
      .in_place = {{0, 0}},
      .lower = map_unary(log_sigmoid_of),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
