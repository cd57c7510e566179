#include <limits>

#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

bool has_lower_bound(const Attrs& attrs) { return attrs.get<double>("min") != -kUnbounded; }
bool has_upper_bound(const Attrs& attrs) { return attrs.get<double>("max") != kUnbounded; }

std::vector<Type> infer_clip(const InferCtx& c) {
  require_numeric(c, 0);
  require_not_nan(c, "min");
  require_not_nan(c, "max");
  const bool low = has_lower_bound(c.attrs()), high = has_upper_bound(c.attrs());
  c.require(low || high, "needs attribute 'min', attribute 'max' or both");
  if (low) require_representable(c, "min", c.in(0).dtype);
  if (high) require_representable(c, "max", c.in(0).dtype);
  return {c.in(0)};
}

Values clip_grad(const GradCtx& c) {
  const Value x = c.in(0), dy = c.dout(0);
  Value inside;
  if (has_lower_bound(c.attrs())) inside = greater(x, scalar_like(x, c.attr<double>("min")));
  if (has_upper_bound(c.attrs())) {
    const Value below = less(x, scalar_like(x, c.attr<double>("max")));
    inside = inside ? logical_and(inside, below) : below;
  }
  return {where(inside, dy, scalar_like(dy, 0))};
}

}  // namespace

OpDef clip_op() {
  return OpDef{
      .name = "clip",
      .doc =
          "min(max(x, `min`), `max`). NaN stays NaN. The gradient is 0 where x is at a bound or "
          "beyond it.",
      .inputs = {{"x", "numeric tensor"}},
      .attrs = {{"min", -kUnbounded, "lower bound; minus infinity: none"},
                {"max", kUnbounded, "upper bound; infinity: none"}},
      .outputs = {{"y", "like x"}},
      .infer = infer_clip,
      .grad = GradFn(clip_grad),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(2),
      .in_place = {{0, 0}},
      .lower = Map{[](const LowerCtx& c) {
        Expr y = c.in(0);
        const auto bound = [&](std::string_view name) {
          return Expr::constant(y.dtype(), c.attr<double>(name));
        };
        if (has_lower_bound(c.attrs())) y = scalar::max(y, bound("min"));
        if (has_upper_bound(c.attrs())) y = scalar::min(y, bound("max"));
        return std::vector{y};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
