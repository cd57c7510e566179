#include "ops/elementwise.h"
#include "ops/index/axis_attr.h"
#include "ops/index/scatter_rows.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_index_add(const InferCtx& c) {
  require_numeric(c, 0);
  const Type &x = c.in(0), &index = c.in(1);
  const int64_t axis = nonnegative_axis(c, x.shape);
  c.require(is_integer(index.dtype) && index.shape.rank() == 1,
            "the index must be an integer vector, not " + index.str());
  Type expected{x.dtype, x.shape, {}};
  expected.shape[static_cast<size_t>(axis)] = index.shape[0];
  c.require(!(x.shape.has_batch() && index.shape.has_batch()),
            x.str() + " and index " + index.str() + " both have the batch dimension");
  c.require(c.in(2) == expected,
            "expects updates " + expected.str() + ", one slice per index, got " + c.in(2).str());
  require_finite(c, "alpha");
  require_representable(c, "alpha", x.dtype);
  return {x};
}

Values index_add_grad(const GradCtx& c) {
  const Value dy = c.dout(0);
  if (dy.shape().numel().size == 0) {  // there is no element that gather() could read
    return {dy, {}, fill(*c.op().graph(), {.type = c.in(2).type()}, c.op().loc)};
  }
  const Value updates =
      gather(dy, c.in(1), {.axis = c.attr<int64_t>("axis")}) * c.attr<double>("alpha");
  return {dy, {}, updates};
}

kir::Kernel index_add_kernel(const LoopsCtx& c) {
  const Shape& shape = c.out_type().shape;
  const AxisView view = view_along(shape, nonnegative_axis(c.attrs(), shape));
  const double alpha = c.attr<double>("alpha");
  const Expr inner = c.extent(view.inner);
  KernelWriter k(c);
  const auto row = [&](const Expr&, const Expr& n) {
    const Expr given = k.let(scalar::cast(k.load(k.operand(1), n), i64));
    return k.check_index(0, given, Expr::index(view.extent));
  };
  scatter_rows(k, c,
               {.outer = view.outer,
                .inner = view.inner,
                .count = c.in_type(1).shape.numel(),
                .rows = view.extent,
                .reduce = "add",
                .row = row,
                .initial = [&](const Expr& offset) { return k.load(k.operand(0), offset); },
                .update =
                    [&](const Expr& position, const Expr& i) {
                      return k.load(k.operand(2), position * inner + i) * alpha;
                    }});
  return k.kernel();
}

}  // namespace

OpDef index_add_op() {
  return OpDef{
      .name = "index_add",
      .doc =
          "x with alpha * updates[i..., n, k...] added to x[i..., index[n], k...] for all n in "
          "ascending order, like torch.index_add. An index out of range raises an error.",
      .inputs = {{"x", "numeric tensor"},
                 {"index", "integer vector"},
                 {"updates", "x's type, but index's extent along `axis`"}},
      .attrs = {axis_attr("axis that the index addresses", 0),
                {"alpha", 1.0, "factor of the updates"}},
      .outputs = {{"y", "same type as x"}},
      .infer = infer_index_add,
      .grad = GradFn(index_add_grad),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_in(0) + 2 * c.numel_in(2)}; },
      .in_place = {{0, 0}},
      .lower = Loops{index_add_kernel,
                     [](const LowerCtx& c) {
                       const auto axis = nonnegative_axis(c.attrs(), c.out_type().shape);
                       return std::map<int64_t, size_t>{{0, static_cast<size_t>(axis)}};
                     }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
