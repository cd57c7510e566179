#include "ops/random/draw.h"
#include "ops/random/initializer.h"

namespace fluid {

OpDef normal_op() {
  return OpDef{
      .name = "normal",
      .doc =
          "Independent normally distributed random numbers. A number depends only on the seed, the "
          "stream and the logical index, up to rounding on different devices.",
      .inputs = {{"seed", "i64 scalar"}},
      .attrs = {{"type", Type{}, "type of the result", true},
                {"mean", 0.0, "mean of the distribution"},
                {"std", 1.0, "standard deviation of the distribution"},
                {"stream", int64_t{-1}, "identifies the Philox random stream"}},
      .outputs = {{"y", "of type `type`"}},
      .infer =
          [](const InferCtx& c) {
            c.require(c.attr<double>("std") >= 0, "attribute 'std' must not be negative");
            return std::vector{infer_random(c)};
          },
      .grad = NoGrad{},
      .effects = Random{},
      .amp = {Amp::kFollow},
      .cost = [](const CostCtx& c) { return Cost{.flops = 150 * c.numel_out()}; },
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) {
        const Type& type = c.out_type();
        const Expr pair = linear_index(c, type.shape, c.out_vars()) * 2.0;
        const Expr z = normal_from_bits(stream_random_bits(c, c.in(0), pair),
                                        stream_random_bits(c, c.in(0), pair + 1.0), type.dtype);
        return std::vector{z * c.attr<double>("std") + c.attr<double>("mean")};
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
