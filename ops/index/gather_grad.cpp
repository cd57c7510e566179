#include "ops/elementwise.h"
#include "ops/index/axis_attr.h"
#include "ops/index/scatter_rows.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_gather_grad(const InferCtx& c) {
  const Type& input = c.attr<Type>("input");
  const int64_t axis = nonnegative_axis(c, input.shape);
  Shape expected(input.shape.begin(), input.shape.begin() + axis);
  expected.insert(expected.end(), c.in(1).shape.begin(), c.in(1).shape.end());
  expected.insert(expected.end(), input.shape.begin() + axis + 1, input.shape.end());
  c.require(is_integer(c.in(1).dtype) && is_float(input.dtype) && c.in(0).dtype == input.dtype &&
                c.in(0).shape == expected,
            "expects dy " + Type{input.dtype, expected, {}}.str() + ", got " + c.in(0).str());
  return {input};
}

kir::Kernel gather_grad_kernel(const LoopsCtx& c) {
  const Shape& shape = c.out_type().shape;
  const AxisView view = view_along(shape, nonnegative_axis(c.attrs(), shape));
  const Expr inner = c.extent(view.inner);
  KernelWriter k(c);
  scatter_rows(
      k, c,
      {.outer = view.outer,
       .inner = view.inner,
       .count = c.in_type(1).shape.numel(),
       .rows = view.extent,
       .reduce = "add",
       .row = [&](const Expr&,
                  const Expr& n) { return scalar::cast(k.load(k.operand(1), n), i64); },
       .initial = nullptr,
       .update = [&](const Expr& position,
                     const Expr& i) { return k.load(k.operand(0), position * inner + i); }});
  return k.kernel();
}

std::optional<RowUpdates> row_updates_of_gather(const ExpandCtx& c) {
  const Shape& table = c.out_type(0).shape;
  if (nonnegative_axis(c.attrs(), table) != 0 || table.rank() != 2) return std::nullopt;
  const Dim n = c.in(1).shape().numel();
  return RowUpdates{
      reshape(cast(c.in(1), i64), Shape{n}), reshape(c.in(0), Shape{n, table[1]}), {}};
}

}  // namespace

OpDef gather_grad_op() {
  return OpDef{
      .name = "gather_grad",
      .doc =
          "Gradient of gather with respect to x: adds the slices of dy at the indices, in their "
          "order. An index out of range adds nothing.",
      .inputs = {{"dy", "gradient of gather's result"}, {"index", "index of gather"}},
      .attrs = {{"input", Type{}, "type of gather's x", true}, axis_attr("axis of gather", 0)},
      .outputs = {{"dx", "of type `input`"}},
      .infer = infer_gather_grad,
      .grad = GradFn([](const GradCtx& c) {
        return Values{gather(c.dout(0), c.in(1), {.axis = c.attr<int64_t>("axis")}), {}};
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_in(0) + c.numel_out()}; },
      .in_place = {},
      .lower = Loops{gather_grad_kernel},
      .kernels = {},
      .version = 1,
      .row_updates = row_updates_of_gather,
      .internal = true,
  };
}

}  // namespace fluid
