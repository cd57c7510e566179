#include "ops/math/rounding.h"

#include "ops/elementwise.h"

namespace fluid {

OpDef rounding_def(std::string name, std::string doc, double flops,
                   std::function<Expr(const Expr&)> round) {
  return OpDef{
      .name = std::move(name),
      .doc = doc + " Its gradient is 0.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx&) { return Values{Value()}; }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(flops),
      .in_place = {{0, 0}},
      .lower = map_unary(std::move(round)),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
