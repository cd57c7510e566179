#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_reshape(const InferCtx& c) {
  const Shape& to = c.attr<Type>("to").shape;
  c.require(to.numel() == c.in(0).shape.numel(), c.in(0).str() + " has " +
                                                     c.in(0).shape.numel().str() + " elements, " +
                                                     to.str() + " has " + to.numel().str());
  return {{c.in(0).dtype, to}};
}

}  // namespace

OpDef reshape_op() {
  return OpDef{
      .name = "reshape",
      .doc = "Gives x's elements, in row-major order, a new shape.",
      .inputs = {{"x", "any tensor"}},
      .attrs = {{"to", Type{}, "gives the shape of the result; its dtype is ignored", true}},
      .outputs = {{"y", "x's dtype"}},
      .infer = infer_reshape,
      .grad = GradFn([](const GradCtx& c) { return Values{reshape(c.dout(0), c.in(0).shape())}; }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx&) { return Cost{.bytes = 0}; },
      .in_place = {{0, 0}},
      .lower = Alias{},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
