#include "ops/elementwise.h"

namespace fluid {

OpDef numel_op() {
  return OpDef{
      .name = "numel",
      .doc =
          "Number of elements of a tensor of type `of`, with the batch size of the current step.",
      .inputs = {},
      .attrs = {{"of", Type{}, "tensor type; its dtype is also the dtype of the result", true}},
      .outputs = {{"n", "scalar"}},
      .infer =
          [](const InferCtx& c) {
            return std::vector<Type>{{c.attr<Type>("of").dtype, {}}};
          },
      .grad = GradFn([](const GradCtx&) { return Values{}; }),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = cost_per_element(0),
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) {
        const Expr n = c.extent(c.attr<Type>("of").shape.numel());
        return std::vector{scalar::cast(n, c.out_type().dtype)};
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
