#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_where(const InferCtx& c) {
  require_bool(c, 0);
  require_same_dtype(c, 1);
  return {{c.in(1).dtype, broadcast_shape(c)}};
}

Values where_grad(const GradCtx& c) {
  const Value dy = c.dout(0);
  const Value zero = scalar_like(dy, 0);
  return {Value(), sum_to(where(c.in(0), dy, zero), c.in(1).shape()),
          sum_to(where(c.in(0), zero, dy), c.in(2).shape())};
}

}  // namespace

OpDef where_op() {
  return OpDef{
      .name = "where",
      .doc = "Selects a where `condition` is true, and b elsewhere.",
      .inputs = {{"condition", "bool tensor"}, {"a", "any tensor"}, {"b", "same dtype as a"}},
      .attrs = {},
      .outputs = {{"y", "a's dtype, the shape that all three broadcast to"}},
      .infer = infer_where,
      .grad = GradFn(where_grad),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {{0, 1}, {0, 2}},
      .lower = Map{[](const LowerCtx& c) {
        return std::vector{scalar::select(c.in(0), c.in(1), c.in(2))};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
