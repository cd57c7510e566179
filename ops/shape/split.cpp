#include "ops/elementwise.h"
#include "ops/index/axis_attr.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_split(const InferCtx& c) {
  const Type& x = c.in(0);
  const auto axis = static_cast<size_t>(nonnegative_axis(c, x.shape));
  const auto& sizes = c.attr<std::vector<int64_t>>("sizes");
  c.require(!sizes.empty(), "attribute 'sizes' is empty");
  std::vector<Type> types;
  int64_t total = 0;
  bool fits = true;
  for (const int64_t size : sizes) {
    c.require(size >= 0, "sizes must not be negative, but are " + c.attr_text("sizes"));
    fits = fits && !__builtin_add_overflow(total, size, &total);
    types.push_back(x);
    types.back().shape[axis] = Dim(size);
  }
  c.require(fits && total == x.shape[axis].size,
            "the sizes add up to " + (fits ? std::to_string(total) : "more than an int64") +
                ", not to " + x.shape[axis].str() + ", the extent of axis " + std::to_string(axis) +
                " of " + x.str());
  return types;
}

Values split_grad(const GradCtx& c) {
  const Value x = c.in(0);
  Values parts;
  for (size_t i = 0; i < c.op().results.size(); ++i) {
    const Shape& shape = c.op().results[i].type.shape;
    parts.push_back(c.dout(i) ? c.dout(i) : broadcast_to(scalar_like(x, 0), shape));
  }
  return {concat(parts, {.axis = nonnegative_axis(c.attrs(), x.shape())})};
}

}  // namespace

OpDef split_op() {
  return OpDef{
      .name = "split",
      .doc = "Splits x along `axis` into slices of extents `sizes`.",
      .inputs = {{"x", "any tensor"}},
      .attrs = {{"sizes", std::vector<int64_t>{}, "extent of each result along `axis`", true},
                axis_attr("axis to split", 0)},
      .outputs = {{.name = "ys", .doc = "x's dtype and rank", .variadic = true}},
      .infer = infer_split,
      .grad = GradFn(split_grad),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx&) { return Cost{}; },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        const int64_t axis = nonnegative_axis(c.attrs(), c.in(0).shape());
        Values parts;
        int64_t begin = 0;
        for (const int64_t size : c.attr<std::vector<int64_t>>("sizes")) {
          const int64_t end = begin + size;
          parts.push_back(slice(c.in(0), {.starts = begin, .stops = end, .axes = axis}));
          begin = end;
        }
        return parts;
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
