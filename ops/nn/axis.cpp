#include "ops/nn/axis.h"

namespace fluid {

int64_t axis_of(const Attrs& attrs, int64_t rank) {
  const auto axis = attrs.get<int64_t>("axis");
  return axis < 0 ? axis + rank : axis;
}

std::vector<Type> infer_along_axis(const InferCtx& c) {
  const Type& x = c.in(0);
  const auto axis = c.attr<int64_t>("axis");
  c.require(is_float(x.dtype), "expects a float tensor, got " + x.str());
  c.require(axis >= -x.shape.rank() && axis < x.shape.rank(),
            "there is no axis " + std::to_string(axis) + " in " + x.str());
  return {x};
}

bool is_empty_along_axis(const ExpandCtx& c) {
  const Shape& x = c.in(0).shape();
  return x[static_cast<size_t>(axis_of(c.attrs(), x.rank()))].is(0);
}

}  // namespace fluid
