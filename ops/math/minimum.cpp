#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef minimum_op() {
  return OpDef{
      .name = "minimum",
      .doc = "The smaller of a and b; nan when either is nan. Ties share the gradient.",
      .inputs = {{"a", "number tensor"}, {"b", "same dtype, broadcasts with a"}},
      .attrs = {},
      .outputs = {{"y", "the broadcast shape"}},
      .infer = infer_number_broadcast,
      .grad = GradFn([](const GradCtx& c) {
        const Value a = c.in(0), b = c.in(1), dy = c.dout(0), zero = scalar_like(dy, 0);
        const Value shared = where(equal(a, b), dy * 0.5, dy);  // NaN: dy for both, as in PyTorch
        return Values{sum_to(where(greater(a, b), zero, shared), a.shape()),
                      sum_to(where(less(a, b), zero, shared), b.shape())};
      }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}, {0, 1}},
      .lower = map_binary([](const Expr& a, const Expr& b) { return scalar::min(a, b); }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
