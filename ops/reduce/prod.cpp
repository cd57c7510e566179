#include "ops/elementwise.h"
#include "ops/operators.h"
#include "ops/reduction.h"

namespace fluid {
namespace {

/// Gradient of element e: dy times the product of the other elements, computed as dy * p / n. Here
/// p is the product of all nonzero elements, and n is e, or 1 if e is 0. If another element is 0,
/// the product is 0, or NaN beside an infinity or a NaN. This takes three reductions over x (a
/// product and counts of zeros and of non-finite elements), and no cumulative product. As with
/// result / x in PyTorch, p may overflow or underflow where the product of the other elements does
/// not. The second derivative is wrong at zeros.
Values prod_grad(const GradCtx& c) {
  const Value x = c.in(0), zero = scalar_like(x, 0), one = scalar_like(x, 1);
  const Ints axes = c.attr<std::vector<int64_t>>("axes");
  const Value is_zero = equal(x, zero);
  const Value nonzero = where(is_zero, one, x);
  const Value nonzero_others = prod(nonzero, {.axes = axes, .keep_dims = true}) / nonzero;
  // Whether `flags`, zeros and ones, are 0 at all other elements.
  const auto no_other = [&](const Value& flags) {
    return equal(sum(flags, {.axes = axes, .keep_dims = true}), flags);
  };
  // 0 / 0 is NaN.
  const Value zero_product = zero / where(no_other(where(is_finite(x), zero, one)), one, zero);
  const Value others = where(no_other(where(is_zero, one, zero)), nonzero_others, zero_product);
  return {unsqueeze_axes(c.dout(0), x.shape(), c.attrs()) * others};
}

}  // namespace

OpDef prod_op() {
  return OpDef{
      .name = "prod",
      .doc =
          "Product along `axes`; 1 over zero elements. Floats accumulate in f32 or wider. Bools "
          "are multiplied as 0 and 1. The gradient is exact where elements are 0, the second "
          "derivative is not: use `cumprod` for it.",
      .inputs = {{"x", "any tensor"}},
      .attrs = reduction_attrs(),
      .outputs = {{"y", "x's dtype; i64 if x is bool"}},
      .infer = [](const InferCtx& c) { return infer_arithmetic_reduction("prod", c); },
      .grad = GradFn(prod_grad),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_in(0)}; },
      .in_place = {},
      .lower = arithmetic_reduction(Combine::prod),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
