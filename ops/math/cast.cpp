#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef cast_op() {
  return OpDef{
      .name = "cast",
      .doc =
          "Converts x to another dtype. Floats convert to integers by truncation, to bool by != 0, "
          "and to half precision by rounding to nearest even.",
      .inputs = {{"x", "any tensor"}},
      .attrs = {{"to", Type{}, "gives the dtype of the result; its shape is ignored", true}},
      .outputs = {{"y", "x's shape"}},
      .infer =
          [](const InferCtx& c) {
            return std::vector<Type>{{c.attr<Type>("to").dtype, c.in(0).shape}};
          },
      .grad = GradFn([](const GradCtx& c) {
        const bool floats = is_float(c.in(0).dtype()) && is_float(c.out(0).dtype());
        return Values{floats ? cast(c.dout(0), c.in(0).dtype()) : Value()};
      }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(0),
      .in_place = {{0, 0}},
      .lower = Map{[](const LowerCtx& c) {
        return std::vector{scalar::cast(c.in(0), c.out_type().dtype)};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
