#include <algorithm>

#include "ops/elementwise.h"
#include "ops/operators.h"
#include "ops/reduction.h"

namespace fluid {
namespace {

/// A slice along one dimension: the `count` elements at start, start + step, start + 2 * step, ...
struct Range {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};

int64_t clamped(int64_t position, int64_t extent) {
  return std::clamp<int64_t>(position < 0 ? position + extent : position, 0, extent);
}

/// Returns the slice along each dimension of `shape`. Step 0 marks a dimension that is not sliced.
std::vector<Range> ranges_of(const Attrs& attrs, const Shape& shape) {
  const auto& starts = attrs.get<std::vector<int64_t>>("starts");
  const auto& stops = attrs.get<std::vector<int64_t>>("stops");
  const auto& steps = attrs.get<std::vector<int64_t>>("steps");
  const auto& axes = attrs.get<std::vector<int64_t>>("axes");
  std::vector<Range> ranges(shape.size(), Range{0, 0, 0});
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t axis = axes.empty() ? static_cast<int64_t>(i) : axes[i];
    if (axis < 0) axis += shape.rank();
    const int64_t extent = shape[static_cast<size_t>(axis)].size;
    Range& r = ranges[static_cast<size_t>(axis)];
    r.start = clamped(starts[i], extent);
    // The step is clamped to the extent. A larger step selects the same elements, but the sums
    // below could overflow.
    r.step = steps.empty() ? 1 : std::min(steps[i], std::max<int64_t>(extent, 1));
    r.count = (std::max(clamped(stops[i], extent) - r.start, int64_t{0}) + r.step - 1) / r.step;
  }
  return ranges;
}

std::vector<Type> infer_slice(const InferCtx& c) {
  const Shape& shape = c.in(0).shape;
  const auto& starts = c.attr<std::vector<int64_t>>("starts");
  const auto& steps = c.attr<std::vector<int64_t>>("steps");
  const auto& axes = c.attr<std::vector<int64_t>>("axes");
  c.require(c.attr<std::vector<int64_t>>("stops").size() == starts.size() &&
                (steps.empty() || steps.size() == starts.size()) &&
                (axes.empty() ? starts.size() <= shape.size() : axes.size() == starts.size()),
            "starts, stops, steps and axes must be of one length, no longer than the rank");
  for (const int64_t step : steps) c.require(step > 0, "steps must be positive");
  if (!axes.empty()) normalized_axes(c, axes, shape.size());
  const std::vector<Range> ranges = ranges_of(c.attrs(), shape);
  Type type{c.in(0).dtype, shape, {}};
  for (size_t d = 0; d < shape.size(); ++d) {
    if (ranges[d].step == 0) continue;
    c.require(!shape[d].batch, "the batch dimension of " + c.in(0).str() + " cannot be sliced");
    type.shape[d] = Dim(ranges[d].count);
  }
  return {type};
}

Values slice_grad(const GradCtx& c) {
  const Shape& shape = c.in(0).shape();
  const std::vector<Range> ranges = ranges_of(c.attrs(), shape);
  PadAttrs pads{Ints(shape.size()), Ints(shape.size()), Ints(shape.size()), 0.0};
  for (size_t d = 0; d < shape.size(); ++d) {
    const Range& r = ranges[d];
    if (r.step == 0) continue;
    const int64_t spread = r.count == 0 ? 0 : (r.count - 1) * r.step + 1;
    pads.low[d] = r.start;
    pads.interior[d] = r.step - 1;
    pads.high[d] = shape[d].size - r.start - spread;
  }
  return {pad(c.dout(0), pads)};
}

}  // namespace

OpDef slice_op() {
  return OpDef{
      .name = "slice",
      .doc = "Strided slice: elements starts, starts + steps, ... before stops along `axes`.",
      .inputs = {{"x", "any tensor"}},
      .attrs = {{"starts", std::vector<int64_t>{},
                 "first index per axis; negative: counted from the end", true},
                {"stops", std::vector<int64_t>{},
                 "end index per axis, exclusive and clamped; negative: counted from the end", true},
                {"steps", std::vector<int64_t>{}, "positive step per axis; empty: 1"},
                {"axes", std::vector<int64_t>{}, "axes to slice; empty: the leading axes"}},
      .outputs = {{"y", "x's dtype and rank"}},
      .infer = infer_slice,
      .grad = GradFn(slice_grad),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(0),
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) {
        std::vector<Expr> index = c.out_vars();
        const std::vector<Range> ranges = ranges_of(c.attrs(), c.in_type(0).shape);
        for (size_t d = 0; d < index.size(); ++d) {
          if (ranges[d].step == 0) continue;
          index[d] = index[d] * Expr::index(ranges[d].step) + Expr::index(ranges[d].start);
        }
        return std::vector{c.read(0, index)};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
