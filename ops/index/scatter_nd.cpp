#include "ops/elementwise.h"
#include "ops/index/nd.h"
#include "ops/index/scatter.h"
#include "ops/index/scatter_rows.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_scatter_nd(const InferCtx& c) {
  require_numeric(c, 0);
  require_scatter_reduction(c);
  const Type expected{c.in(0).dtype, require_nd(c).slices(), {}};
  c.require(c.in(2) == expected, "expects updates " + expected.str() + ", got " + c.in(2).str());
  return {c.in(0)};
}

Values scatter_nd_grad(const GradCtx& c) {
  const Value index = c.in(1);
  const int64_t batch_dims = c.attr<int64_t>("batch_dims");
  return scatter_gradients(
      c, {.gather = [&](Value x) { return gather_nd(x, index, {.batch_dims = batch_dims}); },
          .scatter =
              [&](Value x, Value updates, const std::string& reduce) {
                return scatter_nd(x, index, updates, {.batch_dims = batch_dims, .reduce = reduce});
              }});
}

kir::Kernel scatter_nd_kernel(const LoopsCtx& c) {
  const NdView view = nd_view(c.attrs(), c.in_type(0).shape, c.in_type(1).shape);
  const Expr count = c.extent(view.positions.numel()), depth = Expr::index(view.indexed.rank());
  const Expr inner = c.extent(view.slice.numel());
  KernelWriter k(c);
  const auto row = [&](const Expr& outer, const Expr& n) {
    Expr row = Expr::index(0);
    for (int64_t i = 0; i < view.indexed.rank(); ++i) {
      const Expr extent = Expr::index(view.indexed[static_cast<size_t>(i)].size);
      const Expr at = (outer * count + n) * depth + Expr::index(i);
      const Expr given = k.let(scalar::cast(k.load(k.operand(1), at), i64));
      row = row * extent + k.check_index(0, given, extent);
    }
    return row;
  };
  scatter_rows(
      k, c,
      {.outer = view.batch.numel(),
       .inner = view.slice.numel(),
       .count = view.positions.numel(),
       .rows = view.indexed.numel().size,
       .reduce = c.attr<std::string>("reduce"),
       .row = row,
       .initial = [&](const Expr& offset) { return k.load(k.operand(0), offset); },
       .update = [&](const Expr& position,
                     const Expr& i) { return k.load(k.operand(2), position * inner + i); }});
  return k.kernel();
}

}  // namespace

OpDef scatter_nd_op() {
  return OpDef{
      .name = "scatter_nd",
      .doc =
          "x with updates at the indices, as ScatterND of ONNX: y[b..., i_1, ..., i_K, s...] with "
          "i_k = index[b..., p..., k] is combined with updates[b..., p..., s...] in ascending "
          "order "
          "of p. An index out of range raises an error.",
      .inputs = {{"x", "numeric tensor [batch..., indexed..., slice...]"},
                 {"index", "integer tensor [batch..., positions..., K]"},
                 {"updates", "x's dtype, [batch..., positions..., slice...]"}},
      .attrs = {batch_dims_attr(), scatter_reduce_attr()},
      .outputs = {{"y", "same type as x"}},
      .infer = infer_scatter_nd,
      .grad = GradFn(scatter_nd_grad),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_in(0) + c.numel_in(2)}; },
      .in_place = {{0, 0}},
      .lower = Loops{scatter_nd_kernel,
                     [](const LowerCtx& c) {
                       const Shape& x = c.in_type(0).shape;
                       const NdView view = nd_view(c.attrs(), x, c.in_type(1).shape);
                       const bool one = view.indexed.size() == 1;
                       return std::map<int64_t, size_t>{{0, one ? view.batch.size() : x.size()}};
                     }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
