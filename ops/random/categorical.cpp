#include <cmath>

#include "ops/elementwise.h"
#include "ops/operators.h"
#include "ops/random/draw.h"
#include "ops/random/random_op.h"

namespace fluid {
namespace {

std::vector<Type> infer_categorical(const InferCtx& c) {
  const Type& logits = c.in(0);
  c.require(is_float(logits.dtype) && !logits.shape.empty() && !logits.shape.back().batch &&
                logits.shape.back().size > 0,
            "the logits must be a float tensor [..., C] with C > 0, not " + logits.str());
  require_random_state(c, 1);
  return {Type{i64, Shape(logits.shape.begin(), logits.shape.end() - 1), {}}};
}

/// Gumbel-max trick: argmax(logits - log(-log(u))) has the distribution softmax(logits), if each u
/// is uniform in (0, 1).
Values expand_categorical(const ExpandCtx& c) {
  const Type& logits = c.in(0).type();
  const DType dtype = compute_dtype(logits.dtype);
  const Value u =
      record(*c.op().graph(), "random_uniform", {c.in(1)},
             {{"type", Type{dtype, logits.shape, {}}}, {"stream", c.attr<int64_t>("stream")}},
             c.op().loc)[0];
  const Value gumbel = -log(-log(clip(u, {.min = std::ldexp(1.0, -25)})));
  return {argmax(cast(c.in(0), dtype) + gumbel, {.axis = -1})};
}

}  // namespace

OpDef categorical_op() {
  return OpDef{
      .name = "categorical",
      .doc =
          "Draws a class from softmax(logits) for each row in each step, like "
          "torch.distributions.Categorical(logits).sample().",
      .inputs = {{"logits", "float [..., C]"}, random_state_port()},
      .attrs = {stream_attr()},
      .outputs = {{"class", "i64 [...]"}},
      .infer = infer_categorical,
      .grad = NoGrad{},
      .effects = Random{},
      .amp = {Amp::kF32},
      .cost = [](const CostCtx& c) { return Cost{.flops = 90 * c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{expand_categorical},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
