#include "ops/elementwise.h"
#include "ops/loss/elementwise_loss.h"
#include "ops/loss/loss_reduction.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Whether `shape` broadcasts to `to` by NumPy's rule.
bool broadcasts_to(const Shape& shape, const Shape& to) {
  if (shape.size() > to.size()) return false;
  const size_t skip = to.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!shape[d].is(1) && shape[d] != to[skip + d]) return false;
  }
  return true;
}

std::vector<Type> infer_bce_with_logits(const InferCtx& c) {
  require_equal_float_types(c);
  if (c.has(2)) {
    const Type &x = c.in(0), &weight = c.in(2);
    c.require(
        weight.dtype == x.dtype && broadcasts_to(weight.shape, x.shape),
        "pos_weight must have x's dtype and broadcast to " + x.str() + ", got " + weight.str());
  }
  return {reduced_loss_type(c, c.in(0))};
}

Value wide(Value v) { return cast(v, compute_dtype(v.dtype())); }

/// Returns the factor of log(1 + exp(-x)) in the loss: 1 + (pos_weight - 1) * target.
template <class Ctx>
Value log_weight(const Ctx& c) {
  const Value target = wide(c.in(1));
  return c.arity() > 2 ? 1.0 + (wide(c.in(2)) - 1.0) * target : scalar_like(target, 1);
}

Values expand_bce_with_logits(const ExpandCtx& c) {
  const Value x = wide(c.in(0)), target = wide(c.in(1));
  const Value loss = (1.0 - target) * x + log_weight(c) * softplus_of_negative(x);
  return {reduced_loss(loss, c.attrs(), c.in(0).dtype())};
}

Values bce_with_logits_grad(const GradCtx& c) {
  const Value x = wide(c.in(0)), target = wide(c.in(1));
  const Value d = gradient_of_unreduced_loss(c.dout(0), x.shape(), c.attrs());
  const DType dtype = c.in(0).dtype();
  const Value dx = (1.0 - target - log_weight(c) * sigmoid(-x)) * d;
  if (c.arity() == 2) return {cast(dx, dtype), cast(-(x * d), dtype)};
  const Value miss = softplus_of_negative(x) * d;
  const Value dweight = sum_to(broadcast_to(target * miss, x.shape()), c.in(2).shape());
  return {cast(dx, dtype), cast((wide(c.in(2)) - 1.0) * miss - x * d, dtype), cast(dweight, dtype)};
}

}  // namespace

OpDef binary_cross_entropy_with_logits_op() {
  return OpDef{
      .name = "binary_cross_entropy_with_logits",
      .doc =
          "Binary cross-entropy of p = sigmoid(x): -(pos_weight * target * log(p) + (1 - target) * "
          "log(1 - p)), computed in a numerically stable form.",
      .inputs = {{"x", "float tensor of logits"},
                 {"target", "same type as x, in [0, 1]"},
                 {.name = "pos_weight",
                  .doc = "weight of target 1, x's dtype; broadcasts to x's shape",
                  .optional = true}},
      .attrs = {reduction_attr()},
      .outputs = {{"loss", "same type as x, or a scalar"}},
      .infer = infer_bce_with_logits,
      .grad = GradFn(bce_with_logits_grad),
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost = [](const CostCtx& c) { return Cost{.flops = 28 * c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{expand_bce_with_logits},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
