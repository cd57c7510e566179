// Operators with indices. Negative indices count from the end.

#include "frontend/onnx/context.h"
#include "ops/operators.h"

namespace fluid::onnx {
namespace {

Operands gathered(const Context& c) {
  const Value x = c.in(0);
  const int64_t axis = c.integer("axis", 0);
  return {gather(x, from_start(c.in(1), extent(c, x, axis)), {.axis = axis})};
}

Operands gathered_elements(const Context& c) {
  const Value x = c.in(0);
  const int64_t axis = c.integer("axis", 0);
  Value index = from_start(c.in(1), extent(c, x, axis));
  return {take_along_axis(x, index, {.axis = axis})};
}

Operands scattered(const Context& c) {
  const Value x = c.in(0);
  const int64_t axis = c.integer("axis", 0);
  return {scatter(x, from_start(c.in(1), extent(c, x, axis)), c.in(2),
                  {.axis = axis, .reduce = c.text("reduction", "none")})};
}

/// Index tuples [..., K] of the dimensions of x from `batch_dims` on.
Value tuples_from_start(const Context& c, Value x, Value index, int64_t batch_dims) {
  std::vector<int64_t> counts;
  const int64_t k = extent(c, index, -1);
  for (int64_t i = 0; i < k; ++i) counts.push_back(extent(c, x, batch_dims + i));
  const Value by_dimension = cast(c.record_constant(tensor_of(counts)), index.dtype());
  return where(less(index, scalar_like(index, 0)), index + by_dimension, index);
}

Operands gathered_nd(const Context& c) {
  const Value x = c.in(0);
  const int64_t batch_dims = c.integer("batch_dims", 0);
  return {gather_nd(x, tuples_from_start(c, x, c.in(1), batch_dims), {.batch_dims = batch_dims})};
}

Operands scattered_nd(const Context& c) {
  const Value x = c.in(0);
  return {scatter_nd(x, tuples_from_start(c, x, c.in(1), 0), c.in(2),
                     {.reduce = c.text("reduction", "none")})};
}

/// The second of `values` at the index, the first elsewhere. An index out of range is nowhere.
Operands one_hot_of(const Context& c) {
  const auto depth = static_cast<int64_t>(c.constant(1).item());
  const Value label = from_start(cast(c.in(0), i64), depth);
  Shape shape = label.shape();
  shape.push_back(depth);
  const Value hot = cast(one_hot(label, {.to = Type{f32, shape, {}}}), boolean);
  const Values values = split(c.in(2), {.sizes = {1, 1}});
  return {axis_back(where(hot, values[1], values[0]), c.integer("axis", -1))};
}

}  // namespace

void add_indexing(Mappings& all) {
  all["Gather"] = gathered;
  all["GatherElements"] = gathered_elements;
  all["GatherND"] = gathered_nd;
  all["OneHot"] = one_hot_of;
  all["Scatter"] = all["ScatterElements"] = scattered;
  all["ScatterND"] = scattered_nd;
}

}  // namespace fluid::onnx
