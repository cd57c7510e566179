#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef mod_op() {
  return OpDef{
      .name = "mod",
      .doc =
          "Remainder a - floor(a / b) * b, which has the sign of b, like torch.remainder. Integers "
          "modulo 0 are 0.",
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
      .cost = cost_per_element(10),
      .in_place = {{0, 0}, {0, 1}},
      .lower = map_binary(scalar::mod),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
