// Matrix products.

#include "frontend/onnx/context.h"
#include "ops/operators.h"

namespace fluid::onnx {
namespace {

/// Matrix product, like numpy.matmul: a left vector is a row, a right vector is a column.
Operands product(const Context& c) {
  Value a = c.input(0), b = c.input(1);
  const bool row = a.shape().rank() == 1, column = b.shape().rank() == 1;
  if (row) a = unsqueeze(a, {.axes = 0});
  if (column) b = unsqueeze(b, {.axes = 1});
  // f64 products of integers are exact if all sums are below 2^53 in magnitude.
  Value y =
      is_float(a.dtype()) ? matmul(a, b) : cast(matmul(cast(a, f64), cast(b, f64)), a.dtype());
  if (column) y = squeeze(y, {.axes = -1});
  if (row) y = squeeze(y, {.axes = column ? -1 : -2});
  return {y};
}

/// Gemm: alpha * a b + beta * c.
Operands general_product(const Context& c) {
  const MatmulAttrs attrs{.transpose_a = c.bool_attr("transA", false),
                          .transpose_b = c.bool_attr("transB", false)};
  const double alpha = c.float_attr("alpha", 1), beta = c.float_attr("beta", 1);
  Value y = matmul(c.input(0), c.input(1), attrs);
  if (alpha != 1) y = y * alpha;
  if (!c.has_input(2) || beta == 0) return {y};
  return {y + (beta == 1 ? c.input(2) : c.input(2) * beta)};
}

Operands summed_products(const Context& c) {
  return {einsum(c.inputs(), {.equation = c.string_attr("equation", "")})};
}

}  // namespace

void add_linear(Mappings& all) {
  all["Einsum"] = summed_products;
  all["Gemm"] = general_product;
  all["MatMul"] = product;
}

}  // namespace fluid::onnx
