#include "ops/random/draw.h"
#include "ops/random/random_op.h"

namespace fluid {

OpDef random_uniform_op() {
  return random_op_def(
      {.name = "random_uniform",
       .doc = "Independent random numbers of this step, uniform in [low, high), like torch.rand. "
              "They do not depend on micro-batches and ranks.",
       .attrs = {{"low", 0.0, "lower bound, inclusive"}, {"high", 1.0, "upper bound, exclusive"}},
       .check =
           [](const InferCtx& c) {
             c.require(c.attr<double>("low") <= c.attr<double>("high"),
                       "attribute 'low' must not exceed 'high'");
           },
       .draws = 1,
       .draw =
           [](const LowerCtx& c, const std::vector<Expr>& bits) {
             const double low = c.attr<double>("low"), high = c.attr<double>("high");
             return uniform_from_bits(bits[0], c.out_type().dtype) * (high - low) + low;
           }});
}

}  // namespace fluid
