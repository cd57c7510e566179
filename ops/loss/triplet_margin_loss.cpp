#include "ops/elementwise.h"
#include "ops/loss/elementwise_loss.h"
#include "ops/loss/loss_reduction.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_triplet_margin(const InferCtx& c) {
  const Type& a = c.in(0);
  c.require(is_float(a.dtype) && a == c.in(1) && a == c.in(2) && a.shape.rank() >= 1 &&
                !a.shape.back().batch,
            "expects three float tensors [..., D] of equal type, got " + a.str() + ", " +
                c.in(1).str() + " and " + c.in(2).str());
  const auto p = c.attr<int64_t>("p");
  c.require(p == 1 || p == 2, "attribute 'p' must be 1 or 2, not " + std::to_string(p));
  require_positive(c, "margin");
  require_not_negative(c, "eps");
  return {reduced_loss_type(c, {a.dtype, Shape(a.shape.begin(), a.shape.end() - 1), {}})};
}

/// Distance between each row of a and b: the Lp norm of a - b + eps. The norm has extent 1 along
/// the last axis.
struct Distance {
  Value difference;
  Value norm;

  /// Gradient of the norm with respect to a; its negative is the gradient with respect to b.
  Value slope(const Attrs& attrs) const {
    if (attrs.get<int64_t>("p") == 1) return sign_of(difference);
    const Value zero = scalar_like(norm, 0);
    return where(equal(norm, zero), zero, difference / norm);
  }
};

Distance distance(Value a, Value b, const Attrs& attrs) {
  const Value difference = a - b + attrs.get<double>("eps");
  const SumAttrs along{.axes = -1, .keep_dims = true};
  const bool l1 = attrs.get<int64_t>("p") == 1;
  return {difference, l1 ? sum(abs(difference), along) : sqrt(sum(square(difference), along))};
}

struct Triplet {
  Distance positive;  ///< d(anchor, positive)
  Distance negative;  ///< d(anchor, negative)
  Distance swapped;   ///< d(positive, negative), if attribute `swap` is set
  Value excess;       ///< the loss is max(0, excess)
};

template <class Ctx>
Triplet triplet_of(const Ctx& c) {
  const DType wide = compute_dtype(c.in(0).dtype());
  const Value anchor = cast(c.in(0), wide), positive = cast(c.in(1), wide),
              negative = cast(c.in(2), wide);
  Triplet t{distance(anchor, positive, c.attrs()), distance(anchor, negative, c.attrs()), {}, {}};
  Value far = t.negative.norm;
  if (c.template attr<bool>("swap")) {
    t.swapped = distance(positive, negative, c.attrs());
    far = minimum(far, t.swapped.norm);
  }
  t.excess = t.positive.norm - far + c.template attr<double>("margin");
  return t;
}

Shape rows_of(const Shape& x) { return Shape(x.begin(), x.end() - 1); }

Values triplet_margin_grad(const GradCtx& c) {
  const Triplet t = triplet_of(c);
  const Value zero = scalar_like(t.excess, 0);
  const Shape rows = rows_of(c.in(0).shape());
  const Value elements = broadcast_to(gradient_of_unreduced_loss(c.dout(0), rows, c.attrs()), rows);
  const Value d = where(less(t.excess, zero), zero, reshape(elements, t.excess.shape()));
  const Value near = d * t.positive.slope(c.attrs());
  Value far = d * t.negative.slope(c.attrs());  // gradient through d(anchor, negative)
  Value danchor = near - far, dpositive = -near, dnegative = far;
  if (c.attr<bool>("swap")) {
    const Value a = t.negative.norm, b = t.swapped.norm;
    const Value half = scalar_like(d, 0.5), one = scalar_like(d, 1);
    const Value share = where(less(a, b), one, where(equal(a, b), half, zero));
    const Value other = d * t.swapped.slope(c.attrs()) * (1.0 - share);
    far = far * share;
    danchor = near - far;
    dpositive = -near - other;
    dnegative = far + other;
  }
  const DType dtype = c.in(0).dtype();
  return {cast(danchor, dtype), cast(dpositive, dtype), cast(dnegative, dtype)};
}

}  // namespace

OpDef triplet_margin_loss_op() {
  return OpDef{
      .name = "triplet_margin_loss",
      .doc =
          "max(0, d(anchor, positive) - d(anchor, negative) + margin) of each row, where d(a, b) "
          "is the Lp norm of a - b + eps (Balntas et al., 2016).",
      .inputs = {{"anchor", "float rows [..., D]"},
                 {"positive", "same type as anchor"},
                 {"negative", "same type as anchor"}},
      .attrs = {{"margin", 1.0, "difference of the distances from which on the loss is 0"},
                {"p", int64_t{2}, "1: L1 norm; 2: L2 norm"},
                {"eps", 1e-6, "added to each difference"},
                {"swap", false,
                 "replaces d(anchor, negative) by d(positive, negative) where that is smaller"},
                reduction_attr()},
      .outputs = {{"loss", "one value per row, or a scalar"}},
      .infer = infer_triplet_margin,
      .grad = GradFn(triplet_margin_grad),
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost = [](const CostCtx& c) { return Cost{.flops = 8 * c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        const Value excess = triplet_of(c).excess;
        const Value loss = maximum(excess, scalar_like(excess, 0));
        return Values{
            reduced_loss(reshape(loss, rows_of(c.in(0).shape())), c.attrs(), c.in(0).dtype())};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
