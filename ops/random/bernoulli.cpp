#include "ops/elementwise.h"
#include "ops/random/draw.h"
#include "ops/random/random_op.h"

namespace fluid {

OpDef bernoulli_op() {
  return OpDef{
      .name = "bernoulli",
      .doc =
          "1 with probability p, else 0, drawn for each element in each step, like "
          "torch.bernoulli. The gradient is 0.",
      .inputs = {{"p", "float tensor of probabilities"}, random_state_port()},
      .attrs = {stream_attr()},
      .outputs = {{"y", "same type as p"}},
      .infer =
          [](const InferCtx& c) {
            c.require(is_float(c.in(0).dtype),
                      "the probabilities must be a float tensor, not " + c.in(0).str());
            require_random_state(c, 1);
            return std::vector{c.in(0)};
          },
      .grad = GradFn([](const GradCtx&) {
        return Values{Value(), Value()};
      }),
      .effects = Random{},
      .amp = {Amp::kF32},
      .cost = cost_per_element(60),
      .in_place = {{0, 0}},
      .lower = Map{[](const LowerCtx& c) {
        const Expr p = c.in(0);
        const Expr u =
            uniform_from_bits(step_random_bits(c, 1, c.out_type().shape, c.out_vars()), p.dtype());
        return std::vector{scalar::select(scalar::compare(ScalarOp::lt, u, p),
                                          Expr::constant(p.dtype(), 1),
                                          Expr::constant(p.dtype(), 0))};
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
