// Operators whose results depend on attributes, shapes and constants alone.

#include <algorithm>
#include <cmath>

#include "frontend/onnx/context.h"
#include "ops/operators.h"

namespace fluid::onnx {
namespace {

Operands constant_of(const Context& c) {
  if (const Tensor* value = c.tensor("value")) return {*value};
  if (c.has_attr("value_int")) {
    const int64_t value = c.integer("value_int", 0);
    return {Tensor::of<int64_t>({}, std::span(&value, 1))};
  }
  if (c.has_attr("value_float")) {
    const auto value = static_cast<float>(c.number("value_float", 0));
    return {Tensor::of<float>({}, std::span(&value, 1))};
  }
  if (c.has_attr("value_ints")) return {tensor_of(c.list("value_ints"))};
  if (!c.has_attr("value_floats")) c.not_mapped("a constant that is no tensor of numbers");
  const std::vector<double> wide = c.numbers("value_floats");
  const std::vector<float> values(wide.begin(), wide.end());
  return {Tensor::of<float>({static_cast<int64_t>(values.size())}, values)};
}

Operands constant_of_shape(const Context& c) {
  const std::vector<int64_t> shape = c.integers(0);
  const Tensor* value = c.tensor("value");
  const DType dtype = value == nullptr ? f32 : value->dtype();
  return {fill(c.graph(), {.type = Type{dtype, Shape(shape.begin(), shape.end()), {}},
                           .value = value == nullptr ? 0 : value->item()})};
}

/// Returns a matrix with ones on diagonal `k` and zeros elsewhere.
Operands eye_like(const Context& c) {
  const Value x = c.in(0);
  if (x.shape().rank() != 2) c.not_mapped(x.type().str() + " is no matrix");
  const int64_t k = c.integer("k", 0);
  const DType dtype = c.has_attr("dtype") ? dtype_of(c, c.integer("dtype", 0)) : x.dtype();
  const Value ones = fill(c.graph(), {.type = Type{dtype, x.shape(), {}}, .value = 1});
  return {triu(tril(ones, {.diagonal = k}), {.diagonal = k})};
}

Operands range(const Context& c) {
  const Tensor& first = c.constant(0);
  const double start = first.item(), end = c.constant(1).item(), step = c.constant(2).item();
  const auto n = static_cast<int64_t>(std::max(std::ceil((end - start) / step), 0.0));
  return {arange(c.graph(), {.type = Type{first.dtype(), {n}, {}}, .start = start, .step = step})};
}

/// Returns the extents of dimensions [start, end). Clamps `start` and `end` to [0, rank].
Operands shape_of(const Context& c) {
  const Value x = c.in(0);
  const int64_t rank = x.shape().rank();
  const auto bound = [&](const char* name, int64_t fallback) {
    return std::clamp(from_front(c.integer(name, fallback), rank), int64_t{0}, rank);
  };
  std::vector<int64_t> shape;
  for (int64_t d = bound("start", 0); d < bound("end", rank); ++d) {
    shape.push_back(extent(c, x, d));
  }
  return {tensor_of(shape)};
}

Operands size_of_input(const Context& c) {
  int64_t size = 1;
  for (const int64_t n : extents(c, c.in(0))) size *= n;
  return {Tensor::of<int64_t>({}, std::span(&size, 1))};
}

}  // namespace

void add_constants(Mappings& all) {
  all["Constant"] = constant_of;
  all["ConstantOfShape"] = constant_of_shape;
  all["EyeLike"] = eye_like;
  all["Range"] = range;
  all["Shape"] = shape_of;
  all["Size"] = size_of_input;
}

}  // namespace fluid::onnx
