#include "ops/index/axis_attr.h"

#include "ops/reduction.h"

namespace fluid {

AttrDef axis_attr(const std::string& doc, int64_t fallback) {
  return {"axis", fallback, doc + ", not the batch dimension; negative: counted from the end"};
}

int64_t nonnegative_axis(const InferCtx& c, const Shape& shape) {
  const int64_t axis = normalized_axis(c, c.attr<int64_t>("axis"), shape.size());
  c.require(!shape[static_cast<size_t>(axis)].batch,
            "axis " + std::to_string(axis) + " of " + c.in(0).str() + " is the batch dimension");
  return axis;
}

int64_t nonnegative_axis(const Attrs& attrs, const Shape& shape) {
  const int64_t axis = attrs.get<int64_t>("axis");
  return axis < 0 ? axis + shape.rank() : axis;
}

void require_index_along(const InferCtx& c, const Type& x, const Type& index, int64_t axis) {
  c.require(is_integer(index.dtype), "the index must be an integer tensor, not " + index.str());
  bool fits = index.shape.size() == x.shape.size();
  for (size_t d = 0; fits && d < x.shape.size(); ++d) {
    const Dim given = index.shape[d], most = x.shape[d];
    fits =
        static_cast<int64_t>(d) == axis
            ? !given.batch
            : given.batch == most.batch && (given.batch ? given == most : given.size <= most.size);
  }
  c.require(fits, "index " + index.str() + " does not fit into " + x.str() + " besides axis " +
                      std::to_string(axis));
}

bool equal_except_along(const Shape& index, const Shape& x, int64_t axis) {
  Shape others = index;
  others[static_cast<size_t>(axis)] = x[static_cast<size_t>(axis)];
  return others == x;
}

}  // namespace fluid
