#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_broadcast_to(const InferCtx& c) {
  const Shape& from = c.in(0).shape;
  const Shape& to = c.attr<Type>("to").shape;
  bool fits = from.size() <= to.size();
  for (size_t d = 0; fits && d < from.size(); ++d) {
    fits = from[d].is(1) || from[d] == to[to.size() - from.size() + d];
  }
  c.require(fits, c.in(0).str() + " does not broadcast to " + to.str());
  return {{c.in(0).dtype, to}};
}

}  // namespace

OpDef broadcast_to_op() {
  return OpDef{
      .name = "broadcast_to",
      .doc = "Broadcasts x to the shape of `to`, by NumPy's rules.",
      .inputs = {{"x", "any tensor"}},
      .attrs = {{"to", Type{}, "gives the shape of the result; its dtype is ignored", true}},
      .outputs = {{"y", "x's dtype"}},
      .infer = infer_broadcast_to,
      .grad = GradFn([](const GradCtx& c) { return Values{sum_to(c.dout(0), c.in(0).shape())}; }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(0),
      .in_place = {{0, 0}},
      .lower = map_unary([](const Expr& x) { return x; }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
