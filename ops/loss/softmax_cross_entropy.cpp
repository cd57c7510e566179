#include "ops/loss/label.h"
#include "ops/operators.h"

namespace fluid {

OpDef softmax_cross_entropy_op() {
  return OpDef{
      .name = "softmax_cross_entropy",
      .doc =
          "Cross-entropy of softmax(x) and class indices: -log(softmax(x)[label]) per row. A label "
          "out of range raises an error.",
      .inputs = {{"x", "float logits [..., C]"},
                 {"label", "integer class indices, x's shape without C"}},
      .attrs = {},
      .outputs = {{"loss", "one value per row"}},
      .infer =
          [](const InferCtx& c) {
            require_labels(c);
            return std::vector{Type{c.in(0).dtype, c.in(1).shape, {}}};
          },
      .grad = GradFn([](const GradCtx& c) {
        const Value x = c.in(0), label = c.in(1);
        const Value error = softmax(x, {.axis = -1}) - one_hot(label, {.to = x.type()});
        return Values{error * unsqueeze_last(c.dout(0)), {}};
      }),
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost = [](const CostCtx& c) { return Cost{.flops = 4 * c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        const Value x = c.in(0), label = c.in(1);
        const Value largest = max(x, {.axes = -1, .keep_dims = true});
        const Value total = sum(exp(x - largest), {.axes = -1, .keep_dims = true});
        const Shape& rows = label.shape();
        const Value own = take_along_axis(x, unsqueeze_last(label));
        return Values{reshape(log(total) - (own - largest), rows)};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
