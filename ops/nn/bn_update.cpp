#include "ops/optim/optimizer.h"

namespace fluid {
namespace {

std::vector<Type> infer_bn_update(const InferCtx& c) {
  const Type& running = c.in(0);
  c.require(is_float(running.dtype) && running.shape.rank() == 1,
            "expects running statistics of float [C], got " + running.str());
  for (size_t i = 1; i < 4; ++i) {
    c.require(c.in(i).shape == running.shape && is_float(c.in(i).dtype),
              "operand " + std::to_string(i) + " must be like " + running.str() + ", got " +
                  c.in(i).str());
  }
  c.require(c.in(1).dtype == running.dtype, "the running statistics must be of one dtype");
  c.require(is_float(c.in(4).dtype) && c.in(4).shape.empty(),
            "the count must be a float scalar, got " + c.in(4).str());
  require_in_range(c, "momentum", 0);
  return {running, running};
}

}  // namespace

OpDef bn_update_op() {
  return OpDef{
      .name = "bn_update",
      .doc =
          "Updates the running statistics of batch_norm: running = (1 - momentum) * running + "
          "momentum * batch. The variance is the unbiased one, var * count / (count - 1), as in "
          "PyTorch.",
      .inputs =
          {{"running_mean", "float [C]"},
           {"running_var", "float [C]"},
           {"mean", "[C]: batch mean"},
           {"var", "[C]: biased batch variance"},
           {"count",
            "float scalar: number of elements per channel; the divisor count - 1 is at least 1"}},
      .attrs = {{"momentum", 0.1, "weight of the batch statistics"}},
      .outputs = {{"new_mean", "same type as running_mean"},
                  {"new_var", "same type as running_var"}},
      .infer = infer_bn_update,
      .grad = NoGrad{},
      .effects = Updates{{{0, 0}, {1, 1}}},
      .amp = {Amp::kF32},
      .cost = [](const CostCtx& c) { return Cost{.flops = 8 * c.numel_out()}; },
      .in_place = {{.out = 0, .in = 0}, {.out = 1, .in = 1}},
      .lower = Map{[](const LowerCtx& c) {
        const DType dtype = compute_dtype(c.in_type(0).dtype);
        const double momentum = c.attr<double>("momentum");
        const auto moved = [&](const Expr& running, const Expr& batch) {
          return running * (1 - momentum) + scalar::cast(batch, dtype) * momentum;
        };
        const Expr count = scalar::cast(c.in(4), dtype);
        const Expr others = scalar::max(count - 1.0, Expr::constant(dtype, 1));
        return std::vector{moved(c.in(0), c.in(2)),
                           moved(c.in(1), scalar::cast(c.in(3), dtype) * (count / others))};
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
