// Operators whose results depend on attributes, shapes and constants alone.

#include <algorithm>
#include <cmath>

#include "frontend/onnx/context.h"
#include "ops/operators.h"

namespace fluid::onnx {
namespace {

Operands constant_of(const Context& c) {
  if (const Tensor* value = c.tensor_attr("value")) return {*value};
  if (c.has_attr("value_int")) {
    const int64_t value = c.int_attr("value_int", 0);
    return {Tensor::of<int64_t>({}, std::span(&value, 1))};
  }
  if (c.has_attr("value_float")) {
    const auto value = static_cast<float>(c.float_attr("value_float", 0));
    return {Tensor::of<float>({}, std::span(&value, 1))};
  }
  if (c.has_attr("value_ints")) return {i64_tensor(c.ints_attr("value_ints"))};
  if (!c.has_attr("value_floats")) c.fail_unsupported("a constant that is no tensor of numbers");
  const std::vector<double> wide = c.floats_attr("value_floats");
  const std::vector<float> values(wide.begin(), wide.end());
  return {Tensor::of<float>({static_cast<int64_t>(values.size())}, values)};
}

Operands constant_of_shape(const Context& c) {
  const std::vector<int64_t> shape = c.constant_integers(0);
  const Tensor* value = c.tensor_attr("value");
  const DType dtype = value == nullptr ? f32 : value->dtype();
  return {fill(c.graph(), {.type = Type{dtype, Shape(shape.begin(), shape.end()), {}},
                           .value = value == nullptr ? 0 : value->item()})};
}

/// Returns a matrix with ones on diagonal `k` and zeros elsewhere.
Operands eye_like(const Context& c) {
  const Value x = c.input(0);
  if (x.shape().rank() != 2) c.fail_unsupported(x.type().str() + " is no matrix");
  const int64_t k = c.int_attr("k", 0);
  const DType dtype = c.has_attr("dtype") ? dtype_of(c, c.int_attr("dtype", 0)) : x.dtype();
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
  const Value x = c.input(0);
  const int64_t rank = x.shape().rank();
  const auto bound = [&](const char* name, int64_t fallback) {
    return std::clamp(normalize_axis(c.int_attr(name, fallback), rank), int64_t{0}, rank);
  };
  std::vector<int64_t> shape;
  for (int64_t d = bound("start", 0); d < bound("end", rank); ++d) {
    shape.push_back(extent(c, x, d));
  }
  return {i64_tensor(shape)};
}

Operands size_of_input(const Context& c) {
  int64_t size = 1;
  for (const int64_t n : extents(c, c.input(0))) size *= n;
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
