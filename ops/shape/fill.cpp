#include "ops/elementwise.h"

namespace fluid {

OpDef fill_op() {
  return OpDef{
      .name = "fill",
      .doc = "A tensor filled with a constant.",
      .inputs = {},
      .attrs = {{"type", Type{}, "type of the result", true},
                {"value", 0.0, "value of every element"}},
      .outputs = {{"y", "of type `type`"}},
      .infer =
          [](const InferCtx& c) {
            const Type& type = c.attr<Type>("type");
            require_representable(c, "value", type.dtype);
            return std::vector{type};
          },
      .grad = GradFn([](const GradCtx&) { return Values{}; }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(0),
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) {
        const DType dtype = compute_dtype(c.out_type().dtype);
        return std::vector{Expr::constant(dtype, c.attr<double>("value"))};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
