#include "ops/op_def.h"

namespace fluid {
namespace {

std::vector<Type> infer_gradients(const InferCtx& c) {
  c.require(is_float(c.in(0).dtype), "y must be a float tensor, got " + c.in(0).str());
  for (size_t i = 1; i < c.arity(); ++i) {
    c.require(is_float(c.in(i).dtype), "expects float xs, got " + c.in(i).str());
  }
  return {c.ins().begin() + 1, c.ins().end()};
}

}  // namespace

OpDef gradients_op() {
  return OpDef{
      .name = "gradients",
      .doc =
          "The gradients of the sum of y with respect to each x, like torch.autograd.grad(y.sum(), "
          "xs, create_graph=True). They are values of the program, so a loss may depend on them "
          "(gradient penalties). y must depend on each x. Integer and bool values between them "
          "pass "
          "no gradient, as with stop_gradient; the other ops between them must have gradients. If "
          "a "
          "loss depends on the result, the gradients of these ops must, too.",
      .inputs = {{"y", "float tensor"}, {.name = "xs", .doc = "float tensors", .variadic = true}},
      .attrs = {},
      .outputs = {{.name = "dxs", .doc = "types of the xs", .variadic = true}},
      .infer = infer_gradients,
      .grad = NoGrad{},  // expand_gradients replaces the op before append_backward
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = [](const CostCtx&) { return Cost{}; },
      .in_place = {},
      .lower = GradientsOp{},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
