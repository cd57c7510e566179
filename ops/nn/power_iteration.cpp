#include "ops/operators.h"
#include "ops/optim/optimizer.h"

namespace fluid {
namespace {

Value unit_vector(Value x, double eps) {
  const Value norm = sqrt(sum(square(x)));
  return x / maximum(norm, scalar_like(norm, eps));
}

Values iterate_power_method(const ExpandCtx& c) {
  const Value matrix = c.in(0);
  const double eps = c.attr<double>("eps");
  const int64_t rows = matrix.shape()[0].size, columns = matrix.shape()[1].size;
  Value u = c.in(1), v = c.in(2);
  for (int64_t i = 0; i < c.attr<int64_t>("iterations"); ++i) {
    u = unit_vector(sum(matrix * reshape(v, Shape{1, columns}), {.axes = 1}), eps);
    v = unit_vector(sum(matrix * reshape(u, Shape{rows, 1}), {.axes = 0}), eps);
  }
  return {u, v};
}

std::vector<Type> infer_power_iteration(const InferCtx& c) {
  const Type& matrix = c.in(0);
  c.require(is_float(matrix.dtype) && matrix.shape.rank() == 2 && !matrix.shape.has_batch(),
            "expects a float matrix, got " + matrix.str());
  for (size_t i = 0; i < 2; ++i) {
    const Type vector = {matrix.dtype, {matrix.shape[i]}, {}};
    c.require(c.in(i + 1) == vector, "operand " + std::to_string(i + 1) + " must be " +
                                         vector.str() + ", got " + c.in(i + 1).str());
  }
  c.require(c.attr<int64_t>("iterations") > 0, "attribute 'iterations' must be positive");
  require_in_range(c, "eps", 0);
  return {c.in(1), c.in(2)};
}

}  // namespace

OpDef power_iteration_op() {
  return OpDef{
      .name = "power_iteration",
      .doc =
          "Iterations of the power method for the largest singular value of a matrix: u = W v / |W "
          "v|, then v = W^T u / |W^T u|. Gives no gradient: u and v count as constants, as in "
          "torch.nn.utils.parametrizations.spectral_norm. In eval and predict, u and v stay as "
          "they are.",
      .inputs = {{"matrix", "float [M, N]"},
                 {"u", "same dtype, [M]: the left singular vector"},
                 {"v", "same dtype, [N]: the right singular vector"}},
      .attrs = {{"iterations", int64_t{1}, "number of iterations"},
                {"eps", 1e-12, "smallest norm by which a vector is divided"}},
      .outputs = {{"new_u", "same type as u"}, {"new_v", "same type as v"}},
      .infer = infer_power_iteration,
      .grad = GradFn([](const GradCtx& c) { return Values(c.arity()); }),
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost =
          [](const CostCtx& c) {
            const auto iterations = static_cast<double>(c.attrs.get<int64_t>("iterations"));
            return Cost{.flops = iterations * (4 * c.numel_in(0) + 4 * c.numel_out(0) +
                                               4 * c.numel_out(1) + 24)};
          },
      .in_place = {},
      .lower = Expand{iterate_power_method},
      .kernels = {},
      .version = 1,
      .inference =
          [](const ExpandCtx& c) {
            return Values{c.in(1), c.in(2)};
          },
      .internal = true,
  };
}

}  // namespace fluid
