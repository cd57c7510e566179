#include "ops/elementwise.h"

namespace fluid {

OpDef numel_op() {
  return OpDef{
      .name = "numel",
      .doc = "How many elements a tensor of type `of` has, the batch of the running step included.",
      .inputs = {},
      .attrs = {{"of", Type{}, "the type whose elements are counted; also the result's dtype",
                 true}},
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
