#include "ops/internal_functions.h"
#include "ops/loss/label.h"
#include "ops/operators.h"

namespace fluid {

OpDef accuracy_op() {
  return OpDef{
      .name = "accuracy",
      .doc =
          "Number of rows whose argmax is the label, and number of rows. The accuracy is their "
          "quotient. The first of equal maxima wins.",
      .inputs = {{"x", "float scores [..., C]"},
                 {"label", "integer class indices, x's shape without C"}},
      .attrs = {},
      .outputs = {{.name = "correct", .doc = "f64 scalar"},
                  {.name = "rows", .doc = "f64 scalar", .auxiliary = true}},
      .infer =
          [](const InferCtx& c) {
            require_labels(c);
            return std::vector<Type>{{f64, {}, {}}, {f64, {}, {}}};
          },
      .grad = NoGrad{},
      .effects = Metric{},
      .amp = {Amp::kFollow},
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        const Value label = c.in(1);
        const Value best = argmax(c.in(0), {.axis = -1});
        const Value hit = cast(equal(best, cast(label, i64)), f64);
        return Values{sum(hit),
                      internal::numel(*c.op().graph(), {.of = Type{f64, label.shape(), {}}})};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
