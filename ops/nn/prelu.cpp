#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

bool is_single(const Shape& weight) {
  return weight.empty() || (weight.rank() == 1 && weight[0].is(1));
}

std::vector<Type> infer_prelu(const InferCtx& c) {
  for (const size_t i : {0, 1}) require_float(c, i);
  require_same_dtype(c);
  const Shape &x = c.in(0).shape, &weight = c.in(1).shape;
  const bool per_channel = weight.rank() == 1 && x.rank() >= 2 && weight[0] == x[1];
  c.require(is_single(weight) || per_channel,
            "the weight " + c.in(1).str() + " is neither one number nor one per channel (axis 1) " +
                "of " + c.in(0).str());
  return {c.in(0)};
}

/// Returns the shape to which `weight` is reshaped to broadcast with x: [] or [C, 1, ...].
Shape broadcast_weight(const Shape& weight, const Shape& x) {
  if (is_single(weight)) return {};
  Shape shape(x.size() - 1, Dim(1));
  shape[0] = weight[0];
  return shape;
}

Values prelu_grad(const GradCtx& c) {
  const Value x = c.in(0), dy = c.dout(0), zero = scalar_like(x, 0);
  const Shape& weight = c.in(1).shape();
  const Shape aligned = broadcast_weight(weight, x.shape());
  const Value positive = greater(x, zero);
  const Value dx = where(positive, dy, dy * reshape(c.in(1), aligned));
  const Value dweight = sum_to(where(positive, zero, dy * x), aligned);
  return {dx, reshape(dweight, weight)};
}

}  // namespace

OpDef prelu_op() {
  return OpDef{
      .name = "prelu",
      .doc =
          "x where x is positive, else weight * x (He et al., \"Delving deep into rectifiers\", "
          "2015).",
      .inputs = {{"x", "float tensor"},
                 {"weight", "same dtype as x: one number, or [C] along axis 1 of x"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_prelu,
      .grad = GradFn(prelu_grad),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}, {0, 1}},
      .lower = Map{[](const LowerCtx& c) {
        const Shape& weight = c.in_type(1).shape;
        const Expr x = c.in(0);
        std::vector<Expr> index;
        if (!weight.empty()) index = {weight[0].is(1) ? Expr::index(0) : c.out_var(1)};
        const Expr positive = scalar::compare(ScalarOp::gt, x, Expr::constant(x.dtype(), 0));
        return std::vector{scalar::select(positive, x, x * c.read(1, index))};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
