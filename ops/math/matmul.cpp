#include "ops/math/matmul.h"

#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Returns the extents (rows, columns) of the last two dimensions of `type`, swapped if
/// `transpose`.
std::pair<Dim, Dim> matrix_of(const Type& type, bool transpose) {
  const size_t rank = type.shape.size();
  const Dim rows = type.shape[rank - 2];
  const Dim columns = type.shape[rank - 1];
  return transpose ? std::pair(columns, rows) : std::pair(rows, columns);
}

Type batch_dims(const Type& type) {
  return {type.dtype, Shape(type.shape.begin(), type.shape.end() - 2), {}};
}

std::vector<Type> infer_matmul(const InferCtx& c) {
  for (size_t i = 0; i < 2; ++i) {
    require_float(c, i);
    c.require(c.in(i).shape.size() >= 2,
              "operands must be matrices, of rank 2 or more: " + c.in(i).str());
  }
  require_same_dtype(c);
  const auto [m, k] = matrix_of(c.in(0), c.attr<bool>("transpose_a"));
  const auto [k_too, n] = matrix_of(c.in(1), c.attr<bool>("transpose_b"));
  c.require(k == k_too, "cannot multiply " + c.in(0).str() + " by " + c.in(1).str() +
                            ": the inner extents are " + k.str() + " and " + k_too.str());
  const std::vector<Type> outer = {batch_dims(c.in(0)), batch_dims(c.in(1))};
  Shape shape = broadcast_shape(InferCtx("matmul", outer, c.attrs(), c.loc()));
  shape.push_back(m);
  shape.push_back(n);
  return {{c.in(0).dtype, shape}};
}

/// Merges all dimensions of `x` but the last.
Value rows_of(Value x) {
  const Shape& shape = x.shape();
  return reshape(x, {Shape(shape.begin(), shape.end() - 1).numel(), shape.back()});
}

/// Returns the gradient of a matrix b by which all rows of a are multiplied: one product over all
/// rows, instead of a product for each matrix of a and their sum.
Value gradient_of_matrix(Value a, Value dy, bool transpose_b) {
  const Value x = rows_of(a), d = rows_of(dy);
  return transpose_b ? matmul(d, x, {.transpose_a = true}) : matmul(x, d, {.transpose_a = true});
}

Values matmul_grad(const GradCtx& c) {
  const Value a = c.in(0), b = c.in(1), dy = c.dout(0);
  const bool ta = c.attr<bool>("transpose_a"), tb = c.attr<bool>("transpose_b");
  const Value da = ta ? matmul(b, dy, {.transpose_a = tb, .transpose_b = true})
                      : matmul(dy, b, {.transpose_b = !tb});
  const bool has_one_matrix = b.shape().rank() == 2 && a.shape().rank() > 2;
  if (has_one_matrix && !ta) return {da, gradient_of_matrix(a, dy, tb)};
  const Value db = tb ? matmul(dy, a, {.transpose_a = true, .transpose_b = ta})
                      : matmul(a, dy, {.transpose_a = !ta});
  return {sum_to(da, a.shape()), sum_to(db, b.shape())};
}

/// Returns a read of element (row, column) of operand `i`, transposed if `transpose`. The batch
/// indices are those of the result element, with broadcasting.
Expr element(const LowerCtx& c, size_t i, bool transpose, const Expr& row, const Expr& column) {
  const Shape& shape = c.in_type(i).shape;
  const size_t skip = c.out_type().shape.size() - shape.size();
  std::vector<Expr> index;
  for (size_t d = 0; d + 2 < shape.size(); ++d) {
    index.push_back(shape[d].is(1) ? Expr::index(0) : c.out_var(skip + d));
  }
  index.push_back(transpose ? column : row);
  index.push_back(transpose ? row : column);
  return c.read(i, std::move(index));
}

}  // namespace

ReduceBody matmul_body(const LowerCtx& c, bool transpose_a, bool transpose_b) {
  const DType dtype = c.out_type().dtype;
  const size_t rank = c.out_type().shape.size();
  const Expr k = c.reduce_var(0);
  const Expr a = element(c, 0, transpose_a, c.out_var(rank - 2), k);
  const Expr b = element(c, 1, transpose_b, k, c.out_var(rank - 1));
  return {{matrix_of(c.in_type(0), transpose_a).second},
          scalar::cast(a, dtype) * scalar::cast(b, dtype)};
}

OpDef matmul_op() {
  return OpDef{
      .name = "matmul",
      .doc = "Matrix product over the last two dimensions. Leading dimensions broadcast.",
      .inputs = {{"a", "float tensor [..., m, k]"}, {"b", "same dtype, [..., k, n]"}},
      .attrs = {{"transpose_a", false, "a is [..., k, m]"},
                {"transpose_b", false, "b is [..., n, k]"}},
      .outputs = {{"y", "[..., m, n]"}},
      .infer = infer_matmul,
      .grad = GradFn(matmul_grad),
      .effects = Pure{},
      .amp = Amp::kHalf,
      .cost =
          [](const CostCtx& c) {
            const bool ta = c.attrs.get<bool>("transpose_a");
            const auto k = static_cast<double>(matrix_of(c.in[0], ta).second.size);
            return Cost{.flops = 2 * k * c.numel_out()};
          },
      .in_place = {},
      .lower = Reduce{Combine::sum,
                      [](const LowerCtx& c) {
                        return matmul_body(c, c.attr<bool>("transpose_a"),
                                           c.attr<bool>("transpose_b"));
                      }},
      .kernels = {{KernelDevice::cpu, "onednn.matmul"},
                  {KernelDevice::cpu, "amx.matmul"},
                  {KernelDevice::cuda, "cublaslt.matmul"}},
      .version = 1,
  };
}

}  // namespace fluid
