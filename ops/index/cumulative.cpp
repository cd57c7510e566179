#include "ops/index/cumulative.h"

#include "ops/elementwise.h"
#include "ops/index/axis_attr.h"
#include "ops/operators.h"

namespace fluid {
namespace {

kir::Kernel cumulative_kernel(const LoopsCtx& c, Combine combine) {
  const AxisView view =
      view_along(c.out_type().shape, nonnegative_axis(c.attrs(), c.out_type().shape));
  const bool reverse = c.attr<bool>("reverse"), exclusive = c.attr<bool>("exclusive");
  const Expr inner = c.extent(view.inner), extent = Expr::index(view.extent);
  KernelWriter k(c);
  for_each_line(k, c, view, [&](const Expr&, const Expr& first) {
    const auto total = k.accumulators(compute_dtype(c.out_type().dtype), combine);
    k.loop(Expr::index(0), extent, [&](const Expr& step) {
      const Expr t = reverse ? extent - Expr::index(1) - step : step;
      const Expr x = k.let(k.load(k.operand(0), first + t * inner));
      if (exclusive) k.store(k.result(), first + t * inner, k.read(total));
      k.accumulate(total, x);
      if (!exclusive) k.store(k.result(), first + t * inner, k.read(total));
    });
  });
  return k.kernel();
}

}  // namespace

std::vector<AttrDef> cumulative_attrs(const std::string& result) {
  return {axis_attr("axis of the " + result + "s", -1),
          {"exclusive", false, "whether an element is left out of its own " + result},
          {"reverse", false, "whether " + result + "s start at the end of the axis"}};
}

std::vector<Type> infer_cumulative(const InferCtx& c) {
  require_numeric(c, 0);
  nonnegative_axis(c, c.in(0).shape);
  return {c.in(0)};
}

Loops cumulative_lowering(Combine combine) {
  return Loops{[combine](const LoopsCtx& c) { return cumulative_kernel(c, combine); }};
}

Value shift(Value v, int64_t axis, int64_t by) {
  const Shape& shape = v.shape();
  const auto at = static_cast<size_t>(axis < 0 ? axis + shape.rank() : axis);
  const int64_t extent = shape[at].size;
  if (extent == 0) return v;
  const int64_t start = by > 0 ? 0 : 1;
  Ints low(shape.size()), high(shape.size());
  (by > 0 ? low : high)[at] = 1;
  const Value kept =
      slice(v, {.starts = start, .stops = start + extent - 1, .axes = static_cast<int64_t>(at)});
  return pad(kept, {.low = low, .high = high});
}

}  // namespace fluid
