#include "ops/random/draw.h"
#include "ops/random/random_op.h"

namespace fluid {

OpDef random_normal_op() {
  return random_op_def(
      {.name = "random_normal",
       .doc = "Independent normally distributed random numbers of this step, like torch.randn. "
              "They do not depend on micro-batches and ranks.",
       .attrs = {{"mean", 0.0, "mean of the distribution"},
                 {"std", 1.0, "standard deviation of the distribution"}},
       .check =
           [](const InferCtx& c) {
             c.require(c.attr<double>("std") >= 0, "attribute 'std' must not be negative");
           },
       .draws = 2,
       .draw =
           [](const LowerCtx& c, const std::vector<Expr>& bits) {
             return normal_from_bits(bits[0], bits[1], c.out_type().dtype) * c.attr<double>("std") +
                    c.attr<double>("mean");
           }});
}

}  // namespace fluid
