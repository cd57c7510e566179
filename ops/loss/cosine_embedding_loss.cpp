#include "ops/elementwise.h"
#include "ops/loss/loss_reduction.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Constant added to the squared norms, as in PyTorch.
constexpr double kEps = 1e-12;

std::vector<Type> infer_cosine_embedding(const InferCtx& c) {
  const Type &a = c.in(0), &b = c.in(1), &target = c.in(2);
  c.require(is_float(a.dtype) && a == b && a.shape.rank() >= 1 && !a.shape.back().batch,
            "expects two float tensors [..., D] of equal type, got " + a.str() + " and " + b.str());
  const Shape rows(a.shape.begin(), a.shape.end() - 1);
  c.require((target.dtype == a.dtype || is_integer(target.dtype)) && target.shape == rows,
            "expects targets " + rows.str() + " of -1 or 1 for rows " + a.str() + ", got " +
                target.str());
  require_finite(c, "margin");
  return {reduced_loss_type(c, {a.dtype, rows, {}})};
}

/// Terms of the cosine similarity of each row of a and b. A term with one value per row has extent
/// 1 along the last axis.
struct CosineSimilarity {
  Value a, b;                  ///< in the compute dtype
  Value squares_a, squares_b;  ///< squared norms plus kEps
  Value norms;                 ///< product of the norms
  Value cosine;
  Value alike, unlike;  ///< masks: target == 1, target == -1
  Value excess;         ///< cosine - margin
};

template <class Ctx>
CosineSimilarity cosine_of(const Ctx& c) {
  const DType wide = compute_dtype(c.in(0).dtype());
  const Value a = cast(c.in(0), wide), b = cast(c.in(1), wide);
  const SumAttrs along{.axes = -1, .keep_dims = true};
  const Value squares_a = sum(square(a), along) + kEps, squares_b = sum(square(b), along) + kEps;
  const Value norms = sqrt(squares_a * squares_b);
  const Value cosine = sum(a * b, along) / norms;
  const Value target = reshape(cast(c.in(2), wide), cosine.shape());
  return {a,
          b,
          squares_a,
          squares_b,
          norms,
          cosine,
          equal(target, scalar_like(target, 1)),
          equal(target, scalar_like(target, -1)),
          cosine - c.template attr<double>("margin")};
}

Values expand_cosine_embedding(const ExpandCtx& c) {
  const CosineSimilarity s = cosine_of(c);
  const Value zero = scalar_like(s.cosine, 0);
  const Value loss = where(s.alike, 1.0 - s.cosine, where(s.unlike, maximum(s.excess, zero), zero));
  return {reduced_loss(reshape(loss, c.in(2).shape()), c.attrs(), c.in(0).dtype())};
}

Values cosine_embedding_grad(const GradCtx& c) {
  const CosineSimilarity s = cosine_of(c);
  const Value zero = scalar_like(s.cosine, 0);
  const Shape& rows = c.in(2).shape();
  const Value d = reshape(
      broadcast_to(gradient_of_unreduced_loss(c.dout(0), rows, c.attrs()), rows), s.cosine.shape());
  const Value pushed = logical_and(s.unlike, greater_equal(s.excess, zero));
  const Value dcosine = where(s.alike, -d, where(pushed, d, zero));
  const auto gradient = [&](Value of, Value other, Value squares) {
    return cast(dcosine * (other / s.norms - of * (s.cosine / squares)), c.in(0).dtype());
  };
  return {gradient(s.a, s.b, s.squares_a), gradient(s.b, s.a, s.squares_b), {}};
}

}  // namespace

OpDef cosine_embedding_loss_op() {
  return OpDef{
      .name = "cosine_embedding_loss",
      .doc =
          "1 - cos(a, b) for target 1, and max(0, cos(a, b) - margin) for target -1, of the rows "
          "of a and b. The loss of any other target is 0. The target has no gradient.",
      .inputs = {{"a", "float rows [..., D]"},
                 {"b", "same type as a"},
                 {"target", "-1 or 1 per row: a's shape without D, a's dtype or an integer dtype"}},
      .attrs = {{"margin", 0.0, "cosine from which on rows of target -1 have a loss"},
                reduction_attr()},
      .outputs = {{"loss", "one value per row, or a scalar"}},
      .infer = infer_cosine_embedding,
      .grad = GradFn(cosine_embedding_grad),
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost = [](const CostCtx& c) { return Cost{.flops = 6 * c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{expand_cosine_embedding},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
