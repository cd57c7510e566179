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

/// Resolves a slice of a dimension by NumPy's rule. Negative positions are counted from the end.
/// Then positions are clamped: to [0, extent] if step > 0, and to [-1, extent - 1] if step < 0.
Range range_of(int64_t start, int64_t stop, int64_t step, int64_t extent) {
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
  const auto clamped = [&](int64_t position) {
    return std::clamp<int64_t>(position < 0 ? position + extent : position, low, high);
  };
  Range r{.start = clamped(start)};
  // Clamps the step to the extent: a larger step selects the same elements, but could overflow the
  // sums below.
  const int64_t most = std::max<int64_t>(extent, 1);
  r.step = std::clamp(step, -most, most);
  const int64_t distance = step > 0 ? clamped(stop) - r.start : r.start - clamped(stop);
  const int64_t stride = std::abs(r.step);
  r.count = (std::max<int64_t>(distance, 0) + stride - 1) / stride;
  return r;
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
    ranges[static_cast<size_t>(axis)] =
        range_of(starts[i], stops[i], steps.empty() ? 1 : steps[i], extent);
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
            "starts, stops, steps and axes must be of one length, no longer than the rank of " +
                c.in(0).str() + ", not " + c.attr_text("starts") + ", " + c.attr_text("stops") +
                ", " + c.attr_text("steps") + " and " + c.attr_text("axes"));
  for (const int64_t step : steps) {
    c.require(step != 0, "steps must not be 0, but are " + c.attr_text("steps"));
  }
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
  const Ints none(shape.size());
  PadAttrs pads{.low = none, .high = none, .interior = none};
  Ints reversed;
  for (size_t d = 0; d < shape.size(); ++d) {
    const Range& r = ranges[d];
    if (r.step == 0) continue;
    const int64_t last = r.start + std::max<int64_t>(r.count - 1, 0) * r.step;
    const int64_t low = r.count == 0 ? 0 : std::min(r.start, last);
    const int64_t spread = r.count == 0 ? 0 : std::abs(last - r.start) + 1;
    pads.low[d] = low;
    pads.interior[d] = std::abs(r.step) - 1;
    pads.high[d] = shape[d].size - low - spread;
    if (r.step < 0) reversed.push_back(static_cast<int64_t>(d));
  }
  const Value ascending = reversed.empty() ? c.dout(0) : flip(c.dout(0), {.axes = reversed});
  return {pad(ascending, pads)};
}

}  // namespace

OpDef slice_op() {
  return OpDef{
      .name = "slice",
      .doc =
          "Strided slice: elements starts, starts + steps, ... before stops along `axes`. A "
          "negative "
          "step runs backwards, and `stops` then lies below `starts`.",
      .inputs = {{"x", "any tensor"}},
      .attrs =
          {{"starts", std::vector<int64_t>{},
            "first index per axis, clamped; negative: counted from the end", true},
           {"stops", std::vector<int64_t>{},
            "end index per axis, exclusive and clamped; negative: counted from the end, so that "
            "only an index below minus the extent includes element 0 in a backward slice",
            true},
           {"steps", std::vector<int64_t>{}, "step per axis, not 0; empty: 1"},
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
