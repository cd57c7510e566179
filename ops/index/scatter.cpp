#include "ops/index/scatter.h"

#include "ops/elementwise.h"
#include "ops/index/axis_attr.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_scatter(const InferCtx& c) {
  require_numeric(c, 0);
  const std::string& reduce = c.attr<std::string>("reduce");
  c.require(is_scatter_reduction(reduce),
            R"(reduce must be "none", "add", "mul", "max" or "min", not ")" + reduce + "\"");
  require_scatter_shapes(c, c.in(0), c.in(1), c.in(2), nonnegative_axis(c, c.in(0).shape));
  return {c.in(0)};
}

/// "none": the gradient of x is 0 at each element that an update replaced. "mul", "max" and "min"
/// have no gradient: PyTorch's scatter_reduce does not specify how equal maxima or minima share the
/// gradient.
Values scatter_grad(const GradCtx& c) {
  const std::string& reduce = c.attr<std::string>("reduce");
  const Value dy = c.dout(0), index = c.in(1);
  const int64_t axis = c.attr<int64_t>("axis");
  const Value updates = take_along_axis(dy, index, {.axis = axis});
  if (reduce == "add") return {dy, {}, updates};
  if (reduce != "none") {
    throw UserError(c.op().loc, "scatter: the gradient of reduce = \"" + reduce +
                                    "\" is not defined; use \"add\" or \"none\"");
  }
  const Value zeros = fill(*c.op().graph(), {.type = updates.type()}, c.op().loc);
  return {scatter(dy, index, zeros, {.axis = axis}), {}, updates};
}

}  // namespace

OpDef scatter_op() {
  return OpDef{
      .name = "scatter",
      .doc =
          "x with updates along `axis`: y[..., index[..., t, ...], ...] is combined with "
          "updates[..., "
          "t, ...] in ascending order of t, as torch.Tensor.scatter and ScatterElements of ONNX. "
          "An "
          "index out of range raises an error.",
      .inputs = {{"x", "numeric tensor"},
                 {"index", "integer, x's shape except along `axis`"},
                 {"updates", "x's dtype, index's shape"}},
      .attrs = {axis_attr("axis that the index addresses", 0),
                {"reduce", std::string("none"),
                 R"("none": the last update of an element counts; "add", "mul", "max", "min")"}},
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
