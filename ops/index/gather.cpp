#include "ops/index/gather.h"

#include "ops/elementwise.h"
#include "ops/index/axis_attr.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_gather(const InferCtx& c) {
  const Type &x = c.in(0), &index = c.in(1);
  const auto axis = nonnegative_axis(c, x.shape);
  c.require(is_integer(index.dtype), "the index must be an integer tensor, not " + index.str());
  c.require(!x.shape[static_cast<size_t>(axis)].is(0),
            "axis " + std::to_string(axis) + " of " + x.str() + " is empty");
  c.require(!(x.shape.has_batch() && index.shape.has_batch()),
            x.str() + " and index " + index.str() + " both have the batch dimension");
  Shape shape(x.shape.begin(), x.shape.begin() + axis);
  shape.insert(shape.end(), index.shape.begin(), index.shape.end());
  shape.insert(shape.end(), x.shape.begin() + axis + 1, x.shape.end());
  return {Type{x.dtype, shape, {}}};
}

std::vector<Expr> gather_body(const LowerCtx& c) {
  const auto axis = static_cast<size_t>(nonnegative_axis(c.attrs(), c.in_type(0).shape));
  const size_t rank = c.in_type(0).shape.size(), index_rank = c.in_type(1).shape.size();
  const std::vector<Expr> out = c.out_vars();
  const auto first = out.begin() + static_cast<ptrdiff_t>(axis);
  const auto last = first + static_cast<ptrdiff_t>(index_rank);
  std::vector<Expr> at(out.begin(), first);
  at.push_back(scalar::cast(c.read(1, {first, last}), i64));
  at.insert(at.end(), last, out.end());
  check(at.size() == rank, "gather: rank");
  return {c.read_checked(0, at)};
}

}  // namespace

Cost gather_cost(const CostCtx& c) {
  const auto bytes = [](const Type& t) { return static_cast<double>(size_of(t.dtype)); };
  return {.bytes = c.numel_out() * bytes(c.out[0]) * 2 + c.numel_in(1) * bytes(c.in[1])};
}

OpDef gather_op() {
  return OpDef{
      .name = "gather",
      .doc =
          "Slices of x along `axis` at the indices, as Gather of ONNX and torch.index_select: "
          "y[i..., j..., k...] = x[i..., index[j...], k...]. An index out of range raises an "
          "error.",
      .inputs = {{"x", "any tensor, rank >= 1"}, {"index", "integer tensor of any shape"}},
      .attrs = {axis_attr("axis that the index addresses", 0)},
      .outputs = {{"y", "x's dtype; index's shape in the place of `axis`"}},
      .infer = infer_gather,
      .grad = GradFn([](const GradCtx& c) {
        return Values{
            internal::gather_grad(c.dout(0), c.in(1),
                                  {.input = c.in(0).type(), .axis = c.attr<int64_t>("axis")}),
            {}};
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost = gather_cost,
      .in_place = {},
      .lower = Map{gather_body},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
