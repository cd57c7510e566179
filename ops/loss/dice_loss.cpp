#include "ops/loss/elementwise_loss.h"
#include "ops/loss/loss_reduction.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Terms of the Dice coefficient of each sample: numerator / denominator. Numerator and denominator
/// have shape [N, 1, ...].
struct Dice {
  Value x, target;  ///< in the compute dtype
  Value numerator, denominator;
};

template <class Ctx>
Dice dice_of(const Ctx& c) {
  const DType wide = compute_dtype(c.in(0).dtype());
  const Value x = cast(c.in(0), wide), target = cast(c.in(1), wide);
  SumAttrs along{.axes = {}, .keep_dims = true};
  for (int64_t axis = 1; axis < x.shape().rank(); ++axis) along.axes.push_back(axis);
  const double smooth = c.template attr<double>("smooth");
  return {x, target, 2.0 * sum(x * target, along) + smooth,
          sum(x, along) + sum(target, along) + smooth};
}

Shape samples_of(const Shape& x) { return {x[0]}; }

Values dice_grad(const GradCtx& c) {
  const Dice dice = dice_of(c);
  const Shape samples = samples_of(dice.x.shape());
  Value d = gradient_of_unreduced_loss(c.dout(0), samples, c.attrs());
  d = reshape(broadcast_to(d, samples), dice.denominator.shape()) / dice.denominator;
  const Value coefficient = dice.numerator / dice.denominator;
  const auto gradient = [&](Value other) {
    return cast((coefficient - 2.0 * other) * d, c.in(0).dtype());
  };
  return {gradient(dice.target), gradient(dice.x)};
}

}  // namespace

OpDef dice_loss_op() {
  return OpDef{
      .name = "dice_loss",
      .doc =
          "Dice loss of each sample (Milletari, Navab and Ahmadi, 2016, without squares in the "
          "denominator): 1 - (2 sum(x * target) + smooth) / (sum(x) + sum(target) + smooth), with "
          "sums over all dimensions but the first. PyTorch and ONNX have no such loss.",
      .inputs = {{"x", "float tensor of probabilities, rank >= 2"}, {"target", "same type as x"}},
      .attrs = {{"smooth", 1.0, "added to the numerator and to the denominator"}, reduction_attr()},
      .outputs = {{"loss", "one value per sample, or a scalar"}},
      .infer =
          [](const InferCtx& c) {
            require_equal_float_types(c);
            const Type& x = c.in(0);
            const bool fits =
                x.shape.rank() >= 2 && !Shape(x.shape.begin() + 1, x.shape.end()).has_batch();
            c.require(fits, "expects x [N, ...] of rank 2 or more, got " + x.str());
            require_not_negative(c, "smooth");
            return std::vector{reduced_loss_type(c, {x.dtype, samples_of(x.shape), {}})};
          },
      .grad = GradFn(dice_grad),
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost = [](const CostCtx& c) { return Cost{.flops = 4 * c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        const Dice dice = dice_of(c);
        const Value loss = 1.0 - dice.numerator / dice.denominator;
        return Values{
            reduced_loss(reshape(loss, samples_of(dice.x.shape())), c.attrs(), c.in(0).dtype())};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
