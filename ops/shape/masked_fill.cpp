#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_masked_fill(const InferCtx& c) {
  require_bool(c, 1);
  require_representable(c, "value", c.in(0).dtype);
  return {{c.in(0).dtype, broadcast_shape(c)}};
}

}  // namespace

OpDef masked_fill_op() {
  return OpDef{
      .name = "masked_fill",
      .doc = "`value` where `mask` is true, and x elsewhere.",
      .inputs = {{"x", "any tensor"}, {"mask", "bool tensor; shape broadcasts with x's"}},
      .attrs = {{"value", 0.0, "value of the masked elements", true}},
      .outputs = {{"y", "x's dtype, the broadcast shape"}},
      .infer = infer_masked_fill,
      .grad = GradFn([](const GradCtx& c) {
        const Value dx = masked_fill(c.dout(0), c.in(1), {.value = 0.0});
        return Values{sum_to(dx, c.in(0).shape()), Value()};
      }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}, {0, 1}},
      .lower = Map{[](const LowerCtx& c) {
        const Expr x = c.in(0);
        const Expr value = Expr::constant(x.dtype(), c.attr<double>("value"));
        return std::vector{scalar::select(c.in(1), value, x)};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
