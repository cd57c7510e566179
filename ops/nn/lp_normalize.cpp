#include "ops/elementwise.h"
#include "ops/nn/axis.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_lp_normalize(const InferCtx& c) {
  const std::vector<Type> types = infer_along_axis(c);
  const auto p = c.attr<int64_t>("p");
  c.require(p == 1 || p == 2, "attribute 'p' must be 1 or 2, not " + std::to_string(p));
  c.require(c.attr<double>("eps") >= 0, "attribute 'eps' must not be negative");
  return types;
}

/// Returns the norm of `x` along attribute `axis`. The result has extent 1 along this axis.
Value norm_of(Value x, const Attrs& attrs) {
  const SumAttrs along{.axes = attrs.get<int64_t>("axis"), .keep_dims = true};
  return attrs.get<int64_t>("p") == 1 ? sum(abs(x), along) : sqrt(sum(square(x), along));
}

Values expand_lp_normalize(const ExpandCtx& c) {
  if (is_empty_along_axis(c)) return {c.in(0)};
  const Value x = cast(c.in(0), compute_dtype(c.in(0).dtype()));
  const Value norm = norm_of(x, c.attrs());
  const Value y = x / maximum(norm, scalar_like(norm, c.attr<double>("eps")));
  return {cast(y, c.in(0).dtype())};
}

Values lp_normalize_grad(const GradCtx& c) {
  const Value x = cast(c.in(0), compute_dtype(c.in(0).dtype()));
  const Value dy = cast(c.dout(0), x.dtype());
  const Value norm = norm_of(x, c.attrs()), zero = scalar_like(x, 0);
  const Value eps = scalar_like(x, c.attr<double>("eps"));
  const Value divisor = maximum(norm, eps);
  const Value y = x / divisor;
  const Value slope = c.attr<int64_t>("p") == 1 ? sign_of(x) : y;  // d norm / dx if norm >= eps
  const Value pull = sum(dy * y, {.axes = c.attr<int64_t>("axis"), .keep_dims = true});
  const Value dx = (dy - slope * where(less(norm, eps), zero, pull)) / divisor;
  return {cast(dx, c.in(0).dtype())};
}

}  // namespace

OpDef lp_normalize_op() {
  return OpDef{
      .name = "lp_normalize",
      .doc = "x / max(norm, eps), where norm is the Lp norm of x along `axis`.",
      .inputs = {{"x", "float tensor, rank >= 1"}},
      .attrs = {{"axis", int64_t{-1}, "axis to normalise; negative: counted from the end"},
                {"p", int64_t{2}, "1: L1 norm; 2: L2 norm"},
                {"eps", 1e-12, "smallest divisor"}},
      .outputs = {{"y", "same type as x"}},
      .infer = infer_lp_normalize,
      .grad = GradFn(lp_normalize_grad),
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost = [](const CostCtx& c) { return Cost{.flops = 4 * c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{expand_lp_normalize},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
