#include <limits>

#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

Expr mod_of_floats(const Expr& a, const Expr& b) {
  const DType dtype = a.dtype();
  const Expr zero = Expr::constant(dtype, 0);
  const Expr infinity = Expr::constant(dtype, std::numeric_limits<double>::infinity());
  const Expr infinite = scalar::compare(ScalarOp::eq, scalar::unary(ScalarOp::abs, b), infinity);
  // The multiply-add is an fma, so the remainder is exact. For an infinite b, the remainder is a;
  // if a is infinite too, it is NaN (from a - a).
  const Expr exact = a - scalar::unary(ScalarOp::floor, a / b) * b;
  const Expr rest = scalar::select(infinite, a + (a - a), exact);
  // The remainder and b may differ in sign if b is infinite, or if a / b was rounded up to an
  // integer.
  const Expr other_sign = scalar::compare(ScalarOp::ne, scalar::compare(ScalarOp::lt, rest, zero),
                                          scalar::compare(ScalarOp::lt, b, zero));
  const Expr off = scalar::logical_and(scalar::compare(ScalarOp::ne, rest, zero), other_sign);
  return scalar::select(off, rest + b, rest);
}

}  // namespace

OpDef mod_op() {
  return OpDef{
      .name = "mod",
      .doc =
          "Remainder a - floor(a / b) * b, which has the sign of b. Integers modulo 0 are 0. For "
          "floats, exact while floor(a / b) is exact in the dtype of the arithmetic.",
      .inputs = {{"a", "numeric tensor"}, {"b", "same dtype as a; shape broadcasts with a's"}},
      .attrs = {},
      .outputs = {{"y", "the broadcast shape"}},
      .infer = infer_numeric_broadcast,
      .grad = GradFn([](const GradCtx& c) {
        const Value a = c.in(0), b = c.in(1), dy = c.dout(0);
        return Values{sum_to(dy, a.shape()), sum_to(-(dy * floor(a / b)), b.shape())};
      }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(8),
      .in_place = {{0, 0}, {0, 1}},
      .lower = map_binary([](const Expr& a, const Expr& b) {
        return is_float(a.dtype()) ? mod_of_floats(a, b) : scalar::mod(a, b);
      }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
