#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef pow_op() {
  return OpDef{
      .name = "pow",
      .doc = "a to the power of b.",
      .inputs = {{"a", "float tensor"}, {"b", "same dtype as a; shape broadcasts with a's"}},
      .attrs = {},
      .outputs = {{"y", "the broadcast shape"}},
      .infer = infer_float_broadcast,
      .grad = GradFn([](const GradCtx& c) {
        const Value a = c.in(0), b = c.in(1), y = c.out(0), dy = c.dout(0);
        const Value zero = scalar_like(dy, 0);
        // At b = 0 the formula for da may give 0 * inf. At a = 0 with b >= 0 the formula for db is
        // not finite. The gradients at these points are set to 0.
        const Value da = where(equal(b, zero), zero, dy * b * pow(a, b - 1.0));
        const Value flat = logical_and(equal(a, zero), greater_equal(b, zero));
        const Value db = where(flat, zero, dy * y * log(a));
        return Values{sum_to(da, a.shape()), sum_to(db, b.shape())};
      }),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = cost_per_element(20),
      .in_place = {{0, 0}, {0, 1}},
      .lower = map_binary(scalar::pow),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
