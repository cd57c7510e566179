#include "ops/index/scatter.h"

#include "ops/elementwise.h"
#include "ops/index/axis_attr.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_scatter(const InferCtx& c) {
  require_numeric(c, 0);
  require_scatter_reduction(c);
  require_scatter_shapes(c, c.in(0), c.in(1), c.in(2), nonnegative_axis(c, c.in(0).shape));
  return {c.in(0)};
}

Values scatter_grad(const GradCtx& c) {
  const Value index = c.in(1);
  const int64_t axis = c.attr<int64_t>("axis");
  return scatter_gradients(
      c, {.gather = [&](Value x) { return take_along_axis(x, index, {.axis = axis}); },
          .scatter =
              [&](Value x, Value updates, const std::string& reduce) {
                return scatter(x, index, updates, {.axis = axis, .reduce = reduce});
              }});
}

}  // namespace

OpDef scatter_op() {
  return OpDef{
      .name = "scatter",
      .doc =
          "x with updates along `axis`: y[..., index[..., t, ...], ...] is combined with "
          "updates[..., t, ...] in ascending order of t, like torch.Tensor.scatter and "
          "ScatterElements of ONNX. An index out of range raises an error.",
      .inputs = {{"x", "numeric tensor"},
                 {"index", "integer, x's rank; besides `axis`, no extent above x's"},
                 {"updates", "x's dtype, index's shape"}},
      .attrs = {axis_attr("axis that the index addresses", 0), scatter_reduce_attr()},
      .outputs = {{"y", "same type as x"}},
      .infer = infer_scatter,
      .grad = GradFn(scatter_grad),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_in(0) + c.numel_in(2)}; },
      .in_place = {{0, 0}},
      .lower = Loops{[](const LoopsCtx& c) {
                       return scatter_lines_kernel(c, {.initial = 0, .index = 1, .updates = 2},
                                                   c.attr<std::string>("reduce"));
                     },
                     [](const LowerCtx& c) {
                       const auto axis = nonnegative_axis(c.attrs(), c.out_type().shape);
                       return std::map<int64_t, size_t>{{0, static_cast<size_t>(axis)}};
                     }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
