#include "ops/elementwise.h"
#include "ops/operators.h"
#include "ops/reduction.h"

namespace fluid {
namespace {

/// Returns attribute "axes" as non-negative indices. An empty list stays empty.
Ints flipped_axes(const Attrs& attrs, const Shape& shape) {
  const auto& axes = attrs.get<std::vector<int64_t>>("axes");
  return axes.empty() ? Ints() : normalized_axes(axes, shape.size());
}

std::vector<Type> infer_flip(const InferCtx& c) {
  const Type& x = c.in(0);
  const auto& axes = c.attr<std::vector<int64_t>>("axes");
  if (!axes.empty()) normalized_axes(c, axes, x.shape.size());
  for (const int64_t axis : flipped_axes(c.attrs(), x.shape)) {
    c.require(!x.shape[static_cast<size_t>(axis)].batch,
              "the batch dimension of " + x.str() + " cannot be flipped");
  }
  return {x};
}

}  // namespace

OpDef flip_op() {
  return OpDef{
      .name = "flip",
      .doc = "Reverses the order of the elements along `axes`.",
      .inputs = {{"x", "any tensor"}},
      .attrs = {{"axes", std::vector<int64_t>{},
                 "axes to reverse, not the batch dimension; negative: counted from the end; "
                 "empty: none",
                 true}},
      .outputs = {{"y", "like x"}},
      .infer = infer_flip,
      .grad = GradFn([](const GradCtx& c) {
        return Values{flip(c.dout(0), {.axes = Ints(c.attr<std::vector<int64_t>>("axes"))})};
      }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(0),
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) {
        const Shape& shape = c.in_type(0).shape;
        std::vector<Expr> index = c.out_vars();
        for (const int64_t axis : flipped_axes(c.attrs(), shape)) {
          const auto d = static_cast<size_t>(axis);
          index[d] = Expr::index(shape[d].size - 1) - index[d];
        }
        return std::vector{c.read(0, index)};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
