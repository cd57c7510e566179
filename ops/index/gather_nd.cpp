#include "ops/elementwise.h"
#include "ops/index/gather.h"
#include "ops/index/nd.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_gather_nd(const InferCtx& c) {
  const NdView view = require_nd(c);
  c.require(view.indexed.numel().size > 0,
            "an indexed dimension of " + c.in(0).str() + " is empty");
  return {Type{c.in(0).dtype, view.slices(), {}}};
}

Values gather_nd_grad(const GradCtx& c) {
  const Value x = c.in(0);
  const Value zeros = fill(*c.op().graph(), {.type = x.type()}, c.op().loc);
  return {scatter_nd(zeros, c.in(1), c.dout(0),
                     {.batch_dims = c.attr<int64_t>("batch_dims"), .reduce = "add"}),
          {}};
}

std::vector<Expr> gather_nd_body(const LowerCtx& c) {
  const NdView view = nd_view(c.attrs(), c.in_type(0).shape, c.in_type(1).shape);
  const std::vector<Expr> out = c.out_vars();
  const auto first = out.begin() + view.batch.rank(), last = first + view.positions.rank();
  std::vector<Expr> position(out.begin(), last), at(out.begin(), first);
  position.emplace_back();
  for (int64_t i = 0; i < view.indexed.rank(); ++i) {
    position.back() = Expr::index(i);
    at.push_back(scalar::cast(c.read(1, position), i64));
  }
  at.insert(at.end(), last, out.end());
  return {view.indexed.empty() ? c.read(0, at) : c.read_checked(0, at)};
}

}  // namespace

OpDef gather_nd_op() {
  return OpDef{
      .name = "gather_nd",
      .doc =
          "Slices of x at the indices, as GatherND of ONNX: y[b..., p..., s...] = x[b..., i_1, "
          "..., "
          "i_K, s...] with i_k = index[b..., p..., k]. An index out of range raises an error.",
      .inputs = {{"x", "any tensor [batch..., indexed..., slice...]"},
                 {"index", "integer tensor [batch..., positions..., K]"}},
      .attrs = {batch_dims_attr()},
      .outputs = {{"y", "x's dtype, [batch..., positions..., slice...]"}},
      .infer = infer_gather_nd,
      .grad = GradFn(gather_nd_grad),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost = gather_cost,
      .in_place = {},
      .lower = Map{gather_nd_body},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
