#include "ops/elementwise.h"
#include "ops/index/axis_attr.h"
#include "ops/index/gather.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_take_along_axis(const InferCtx& c) {
  const Type &x = c.in(0), &index = c.in(1);
  const int64_t axis = nonnegative_axis(c, x.shape);
  c.require(!x.shape[static_cast<size_t>(axis)].is(0),
            "axis " + std::to_string(axis) + " of " + x.str() + " is empty");
  require_index_along(c, x, index, axis);
  return {Type{x.dtype, index.shape, {}}};
}

Values take_along_axis_grad(const GradCtx& c) {
  const Value x = c.in(0), index = c.in(1), dy = c.dout(0);
  const int64_t axis = nonnegative_axis(c.attrs(), x.shape());
  const bool one_index = index.shape()[static_cast<size_t>(axis)].is(1);
  if (one_index && axis + 1 == x.shape().rank() &&
      equal_except_along(index.shape(), x.shape(), axis)) {
    // one_hot is a Map, so it fuses with the product.
    const Shape rows(index.shape().begin(), index.shape().end() - 1);
    return {one_hot(reshape(index, rows), {.to = x.type()}) * dy, {}};
  }
  return {internal::scatter_add(dy, index, {.to = x.type(), .axis = axis}), {}};
}

}  // namespace

OpDef take_along_axis_op() {
  return OpDef{
      .name = "take_along_axis",
      .doc =
          "Elements of x at the indices along `axis`, as numpy.take_along_axis, torch.gather and "
          "GatherElements of ONNX: y[i..., t, k...] = x[i..., index[i..., t, k...], k...]. An "
          "index out of range raises an error.",
      .inputs = {{"x", "any tensor, rank >= 1"},
                 {"index", "integer, x's rank; besides `axis`, no extent above x's"}},
      .attrs = {axis_attr("axis that the index addresses", -1)},
      .outputs = {{"y", "x's dtype, index's shape"}},
      .infer = infer_take_along_axis,
      .grad = GradFn(take_along_axis_grad),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost = gather_cost,
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) {
        std::vector<Expr> at = c.out_vars();
        const auto axis = static_cast<size_t>(nonnegative_axis(c.attrs(), c.in_type(0).shape));
        at[axis] = scalar::cast(c.in(1), i64);
        return std::vector{c.read_checked(0, at)};
      }},
      .kernels = {},
      .version = 2,
  };
}

}  // namespace fluid
