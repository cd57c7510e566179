#include "ops/nn/normalization.h"

#include "ops/elementwise.h"
#include "ops/internal_functions.h"
#include "ops/nn/axis.h"
#include "ops/operators.h"
#include "ops/reduction.h"

namespace fluid {
namespace {

/// Returns `v` in the compute dtype and with shape `shape`.
Value widened(Value v, const Shape& shape) {
  return reshape(cast(v, compute_dtype(v.dtype())), shape);
}

Shape statistics_shape(const NormalizedView& view) {
  return reduced_shape(view.x, view.axes, true);
}

Value rsqrt_of(Value variance, const Attrs& attrs) {
  return rsqrt(variance + attrs.get<double>("eps"));
}

/// Returns xhat * scale + bias, with the type of result 0.
Value scaled_and_shifted(const ExpandCtx& c, const NormalizedView& view, Value xhat) {
  Value y = xhat;
  if (c.arity() > 1) y = y * widened(c.in(1), view.scale);
  if (c.arity() > 2) y = y + widened(c.in(2), view.scale);
  return reshape(cast(y, c.out_type(0).dtype), c.out_type(0).shape);
}

/// Computes the gradients of a normalisation over NormalizedView::axes.
class NormalizeGrad {
 public:
  NormalizeGrad(const GradCtx& c, const NormalizedView& view, Value centred, size_t rstd)
      : c_(c), view_(view), wide_(centred.dtype()), drstd_(c.dout(rstd)) {
    rstd_ = reshape(c.out(rstd), statistics_shape(view));
    xhat_ = centred * rstd_;
    if (drstd_) drstd_ = reshape(drstd_, statistics_shape(view));
  }

  /// Returns the gradients of x, scale and bias. `mean` is the result index of the mean, or 0 if
  /// the normalisation does not subtract a mean.
  Values gradients(size_t mean) {
    Values result(c_.arity());
    Value dx;
    if (c_.dout(0)) {
      const Value dy = widened(c_.dout(0), view_.x);
      const Value g = c_.arity() > 1 ? dy * widened(c_.in(1), view_.scale) : dy;
      const Value centred = mean > 0 ? g - mean_of(g) : g;
      dx = (centred - xhat_ * mean_of(g * xhat_)) * rstd_;
      if (c_.arity() > 1) result[1] = given(sum_to(dy * xhat_, view_.scale), 1);
      if (c_.arity() > 2) result[2] = given(sum_to(dy, view_.scale), 2);
    }
    const auto also = [&](Value part) { dx = dx ? dx + part : broadcast_to(part, view_.x); };
    if (drstd_) also(-(xhat_ * (square(rstd_) * drstd_ / count())));
    if (mean > 0 && c_.dout(mean)) also(reshape(c_.dout(mean), statistics_shape(view_)) / count());
    if (dx) result[0] = given(dx, 0);
    return result;
  }

 private:
  Value mean_of(Value v) const { return mean(v, {.axes = view_.axes, .keep_dims = true}); }

  /// Returns the number of elements over which a mean and a variance are computed, as a scalar.
  Value count() const {
    Type of{wide_, {}, {}};
    for (const int64_t axis : view_.axes) {
      of.shape.push_back(view_.x[static_cast<size_t>(axis)]);
    }
    return internal::numel(*c_.op().graph(), {.of = of});
  }

  /// Casts and reshapes gradient `v` to the type of the operand with index `operand`.
  Value given(Value v, size_t operand) const {
    return reshape(cast(v, c_.in(operand).dtype()), c_.in(operand).shape());
  }

  const GradCtx& c_;
  const NormalizedView& view_;
  DType wide_;
  Value rstd_, xhat_, drstd_;
};

}  // namespace

NormalizedView trailing_view(const Shape& x, const Attrs& attrs) {
  const int64_t first = axis_of(attrs, x.rank());
  NormalizedView view{x, {}, Shape(x.begin() + first, x.end())};
  for (int64_t axis = first; axis < x.rank(); ++axis) view.axes.push_back(axis);
  return view;
}

NormalizedView grouped_view(const Shape& x, int64_t groups) {
  const int64_t size = groups == 0 ? 0 : x[1].size / groups;
  NormalizedView view{{x[0], groups, size}, {2}, {groups, size}};
  for (size_t d = 2; d < x.size(); ++d) {
    view.axes.push_back(view.x.rank());
    view.x.push_back(x[d]);
    view.scale.push_back(1);
  }
  return view;
}

Shape require_trailing_dims(const InferCtx& c) {
  infer_along_axis(c);
  const Shape& x = c.in(0).shape;
  const int64_t first = axis_of(c.attrs(), x.rank());
  const Shape normalised(x.begin() + first, x.end());
  c.require(!normalised.has_batch(), "axis " + std::to_string(c.attr<int64_t>("axis")) +
                                         " normalises over the batch dimension of " +
                                         c.in(0).str());
  return normalised;
}

void require_channels(const InferCtx& c, int64_t min_rank) {
  const Type& x = c.in(0);
  const bool fits = is_float(x.dtype) && x.shape.rank() >= min_rank &&
                    !Shape(x.shape.begin() + 1, x.shape.end()).has_batch();
  c.require(fits, std::string("expects a float [N, C, ") + (min_rank > 2 ? "L, " : "") +
                      "...], got " + x.str());
}

void require_scale(const InferCtx& c, const Shape& scale, const std::string& role) {
  const DType dtype = c.in(0).dtype;
  const Type statistics{compute_dtype(dtype), scale, {}};
  for (size_t i = 1; i < c.arity(); ++i) {
    const bool fits =
        c.in(i).shape == scale && (c.in(i).dtype == dtype || c.in(i).dtype == statistics.dtype);
    c.require(fits, "operand " + std::to_string(i) + " must be " + statistics.str() + ", " + role +
                        ", got " + c.in(i).str());
  }
  c.require(c.attr<double>("eps") >= 0, "attribute 'eps' must not be negative");
}

AttrDef eps_attr() { return {"eps", 1e-5, "added to the variance"}; }

std::vector<PortDef> scale_and_bias_ports(const std::string& shape) {
  return {{.name = "scale", .doc = shape + ", x's dtype or f32", .optional = true},
          {.name = "bias", .doc = shape + ", x's dtype or f32", .optional = true}};
}

PortDef mean_port(const std::string& shape) {
  return {.name = "mean", .doc = shape + ", f32 or wider", .auxiliary = true};
}

PortDef rstd_port(const std::string& shape) {
  return {.name = "rstd",
          .doc = shape + ", f32 or wider: reciprocal of the standard deviation",
          .auxiliary = true};
}

Values normalize(const ExpandCtx& c, const NormalizedView& view) {
  const Value x = widened(c.in(0), view.x);
  const MeanAttrs along{.axes = view.axes, .keep_dims = true};
  const Value mean = fluid::mean(x, along);
  const Value centred = x - mean;
  const Value rstd = rsqrt_of(fluid::mean(square(centred), along), c.attrs());
  return {scaled_and_shifted(c, view, centred * rstd), reshape(mean, c.out_type(1).shape),
          reshape(rstd, c.out_type(2).shape)};
}

Values normalize_grad(const GradCtx& c, const NormalizedView& view) {
  const Value x = widened(c.in(0), view.x);
  const Value mean = reshape(c.out(1), statistics_shape(view));
  return NormalizeGrad(c, view, x - mean, 2).gradients(1);
}

Values rms_normalize(const ExpandCtx& c, const NormalizedView& view) {
  const Value x = widened(c.in(0), view.x);
  const Value rstd = rsqrt_of(mean(square(x), {.axes = view.axes, .keep_dims = true}), c.attrs());
  return {scaled_and_shifted(c, view, x * rstd), reshape(rstd, c.out_type(1).shape)};
}

Values rms_normalize_grad(const GradCtx& c, const NormalizedView& view) {
  return NormalizeGrad(c, view, widened(c.in(0), view.x), 1).gradients(0);
}

}  // namespace fluid
