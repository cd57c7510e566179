// Operators with indices. Negative indices count from the end.

#include "frontend/onnx/context.h"
#include "ops/operators.h"

namespace fluid::onnx {
namespace {

Operands gathered(const Context& c) {
  const Value x = c.input(0);
  const int64_t axis = c.int_attr("axis", 0);
  return {gather(x, normalize_indices(c.input(1), extent(c, x, axis)), {.axis = axis})};
}

Operands gathered_elements(const Context& c) {
  const Value x = c.input(0);
  const int64_t axis = c.int_attr("axis", 0);
  Value index = normalize_indices(c.input(1), extent(c, x, axis));
  return {take_along_axis(x, index, {.axis = axis})};
}

Operands scattered(const Context& c) {
  const Value x = c.input(0);
  const int64_t axis = c.int_attr("axis", 0);
  return {scatter(x, normalize_indices(c.input(1), extent(c, x, axis)), c.input(2),
                  {.axis = axis, .reduce = c.string_attr("reduction", "none")})};
}

/// Replaces negative indices in `index` [..., K] by their sum with the extent. The K columns index
/// dimensions batch_dims to batch_dims + K - 1 of x.
Value normalize_index_tuples(const Context& c, Value x, Value index, int64_t batch_dims) {
  std::vector<int64_t> counts;
  const int64_t k = extent(c, index, -1);
  for (int64_t i = 0; i < k; ++i) counts.push_back(extent(c, x, batch_dims + i));
  const Value by_dimension = cast(c.record_constant(i64_tensor(counts)), index.dtype());
  return where(less(index, scalar_like(index, 0)), index + by_dimension, index);
}

Operands gathered_nd(const Context& c) {
  const Value x = c.input(0);
  const int64_t batch_dims = c.int_attr("batch_dims", 0);
  return {gather_nd(x, normalize_index_tuples(c, x, c.input(1), batch_dims),
                    {.batch_dims = batch_dims})};
}

Operands scattered_nd(const Context& c) {
  const Value x = c.input(0);
  return {scatter_nd(x, normalize_index_tuples(c, x, c.input(1), 0), c.input(2),
                     {.reduce = c.string_attr("reduction", "none")})};
}

/// OneHot: values[1] at the index, values[0] elsewhere. For an index out of range, all elements are
/// values[0].
Operands one_hot_of(const Context& c) {
  const auto depth = static_cast<int64_t>(c.constant(1).item());
  const Value label = normalize_indices(cast(c.input(0), i64), depth);
  Shape shape = label.shape();
  shape.push_back(depth);
  const Value hot = cast(one_hot(label, {.to = Type{f32, shape, {}}}), boolean);
  const Values values = split(c.input(2), {.sizes = {1, 1}});
  return {move_axis(where(hot, values[1], values[0]), -1, c.int_attr("axis", -1))};
}

/// ReverseSequence: reverses the first lengths[b] elements of each sequence b.
Operands reversed_sequences(const Context& c) {
  const Value x = c.input(0), lengths = cast(c.input(1), i64);
  const int64_t time_axis = c.int_attr("time_axis", 0), batch_axis = c.int_attr("batch_axis", 1);
  const int64_t steps = extent(c, x, time_axis);
  const auto along = [&](Value v, int64_t axis) {
    Shape shape(x.shape().size(), Dim(1));
    shape[static_cast<size_t>(axis)] = v.shape()[0];
    return reshape(v, shape);
  };
  const Value t = along(arange(c.graph(), {.type = Type{i64, {steps}, {}}}), time_axis);
  const Value last = along(lengths - 1.0, batch_axis);
  const Value index = broadcast_to(where(less_equal(t, last), last - t, t), x.shape());
  return {take_along_axis(x, index, {.axis = time_axis})};
}

/// TensorScatter: writes row t of the update to row write_indices[b] + t of the cache, along
/// `axis`. In mode `circular`, rows beyond the end wrap around.
Operands scattered_rows(const Context& c) {
  const Value cache = c.input(0), update = c.input(1);
  const int64_t rank = cache.shape().rank(), axis = normalize_axis(c.int_attr("axis", -2), rank);
  const int64_t rows = extent(c, update, axis), length = extent(c, cache, axis);
  Shape by_row(static_cast<size_t>(rank), Dim(1)), by_sample(by_row);
  by_row[static_cast<size_t>(axis)] = rows;
  by_sample[0] = update.shape()[0];
  Value index = reshape(arange(c.graph(), {.type = Type{i64, {rows}, {}}}), by_row);
  if (c.has_input(2)) index = index + reshape(cast(c.input(2), i64), by_sample);
  if (c.string_attr("mode", "linear") == "circular") {
    index = mod(index, scalar_like(index, static_cast<double>(length)));
  }
  return {scatter(cache, broadcast_to(index, update.shape()), update, {.axis = axis})};
}

}  // namespace

void add_indexing(Mappings& all) {
  all["Gather"] = gathered;
  all["GatherElements"] = gathered_elements;
  all["GatherND"] = gathered_nd;
  all["OneHot"] = one_hot_of;
  all["ReverseSequence"] = reversed_sequences;
  all["Scatter"] = all["ScatterElements"] = scattered;
  all["ScatterND"] = scattered_nd;
  all["TensorScatter"] = scattered_rows;
}

}  // namespace fluid::onnx
