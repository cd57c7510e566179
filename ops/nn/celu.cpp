#include "ops/elementwise.h"
#include "ops/nn/elu.h"

namespace fluid {

OpDef celu_op() {
  return elu_def(
      "celu",
      "x where x is positive, else `alpha` * (exp(x / `alpha`) - 1): an elu with a continuous "
      "derivative (Barron, 2017).",
      {{"alpha", 1.0, "negated limit of the result at minus infinity; not 0"}},
      [](const InferCtx& c) {
        require_finite(c, "alpha");
        c.require(c.attr<double>("alpha") != 0, "attribute 'alpha' must not be 0");
        return infer_float_unary(c);
      },
      [](const Attrs& attrs) {
        const double alpha = attrs.get<double>("alpha");
        return EluCoefficients{.alpha = alpha, .input_scale = 1 / alpha};
      });
}

}  // namespace fluid
