#include <algorithm>

#include "ops/elementwise.h"
#include "ops/operators.h"
#include "ops/reduction.h"

namespace fluid {
namespace {

std::vector<Type> infer_logsumexp(const InferCtx& c) {
  require_float(c, 0);
  return infer_reduction(c);
}

/// Whether a reduced axis has extent 0.
bool reduces_no_elements(const Shape& shape, const Ints& axes) {
  return std::ranges::any_of(normalized_axes(axes, shape.size()),
                             [&](int64_t axis) { return shape[static_cast<size_t>(axis)].is(0); });
}

Values expand_logsumexp(const ExpandCtx& c) {
  const Value x = cast(c.in(0), compute_dtype(c.in(0).dtype()));
  const Ints axes = c.attr<std::vector<int64_t>>("axes");
  const Shape& shape = c.out_type(0).shape;
  const DType dtype = c.out_type(0).dtype;
  if (reduces_no_elements(x.shape(), axes)) {
    return {cast(reshape(log(sum(exp(x), {.axes = axes})), shape), dtype)};
  }
  const Value largest = max(x, {.axes = axes, .keep_dims = true});
  // Subtracts the maximum only if it is finite, because inf - inf is NaN.
  const Value shift = where(is_finite(largest), largest, scalar_like(largest, 0));
  const Value total = sum(exp(x - shift), {.axes = axes, .keep_dims = true});
  return {cast(reshape(log(total) + shift, shape), dtype)};
}

Values logsumexp_grad(const GradCtx& c) {
  const Value x = c.in(0);
  const DType wide = compute_dtype(x.dtype());
  const Value y = cast(unsqueeze_axes(c.out(0), x.shape(), c.attrs()), wide);
  const Value dy = cast(unsqueeze_axes(c.dout(0), x.shape(), c.attrs()), wide);
  return {cast(dy * exp(cast(x, wide) - y), x.dtype())};
}

}  // namespace

OpDef logsumexp_op() {
  return OpDef{
      .name = "logsumexp",
      .doc =
          "log(sum(exp(x))) along `axes`, computed in a numerically stable form; minus infinity "
          "over zero elements.",
      .inputs = {{"x", "float tensor"}},
      .attrs = reduction_attrs(),
      .outputs = {{"y", "x's dtype"}},
      .infer = infer_logsumexp,
      .grad = GradFn(logsumexp_grad),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = [](const CostCtx& c) { return Cost{.flops = 13 * c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{expand_logsumexp},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
