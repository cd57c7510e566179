#include "ops/random/draw.h"
#include "ops/random/initializer.h"

namespace fluid {

OpDef uniform_op() {
  return OpDef{
      .name = "uniform",
      .doc =
          "Independent random numbers, uniform in [low, high). A number depends only on the seed, "
          "the stream and the logical index, not on the device or dtype.",
      .inputs = {{"seed", "i64 scalar"}},
      .attrs = {{"type", Type{}, "type of the result", true},
                {"low", 0.0, "lower bound, inclusive"},
                {"high", 1.0, "upper bound, exclusive"},
                {"stream", int64_t{-1}, "identifies the Philox random stream"}},
      .outputs = {{"y", "of type `type`"}},
      .infer =
          [](const InferCtx& c) {
            c.require(c.attr<double>("low") <= c.attr<double>("high"),
                      "attribute 'low' must not exceed 'high'");
            return std::vector{infer_random(c)};
          },
      .grad = NoGrad{},
      .effects = Random{},
      .amp = {Amp::kFollow},
      .cost = [](const CostCtx& c) { return Cost{.flops = 60 * c.numel_out()}; },
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) {
        const Type& type = c.out_type();
        const double low = c.attr<double>("low"), high = c.attr<double>("high");
        const Expr bits = stream_random_bits(c, c.in(0), linear_index(c, type.shape, c.out_vars()));
        return std::vector{uniform_from_bits(bits, type.dtype) * (high - low) + low};
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
