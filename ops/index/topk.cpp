#include "ops/elementwise.h"
#include "ops/index/axis_attr.h"
#include "ops/index/sort.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_topk(const InferCtx& c) {
  const int64_t axis = require_sortable(c), k = c.attr<int64_t>("k");
  Shape shape = c.in(0).shape;
  Dim& extent = shape[static_cast<size_t>(axis)];
  c.require(k >= 0 && k <= extent.size, "k = " + std::to_string(k) + " is not in [0, " +
                                            extent.str() + "], the extent of axis " +
                                            std::to_string(axis) + " of " + c.in(0).str());
  extent = k;
  return {{c.in(0).dtype, shape, {}}, {i64, shape, {}}};
}

Values expand_topk(const ExpandCtx& c) {
  const int64_t axis = c.attr<int64_t>("axis"), k = c.attr<int64_t>("k");
  const auto first = [&](Value sorted) {
    return slice(sorted, {.starts = 0, .stops = k, .axes = axis});
  };
  const Values all = sort(c.in(0), {.axis = axis, .descending = c.attr<bool>("largest")});
  if (c.attr<bool>("sorted")) return {first(all[0]), first(all[1])};
  const Value index = sort(first(all[1]), {.axis = axis})[0];
  if (index.shape().numel().size == 0) return {first(all[0]), index};
  return {take_along_axis(c.in(0), index, {.axis = axis}), index};
}

}  // namespace

OpDef topk_op() {
  return OpDef{
      .name = "topk",
      .doc =
          "The k largest or smallest elements along `axis` and their indices, as torch.topk and "
          "TopK of ONNX. Among equal elements those of smaller index are taken. NaN counts as the "
          "largest value.",
      .inputs = {{"x", "numeric tensor, rank >= 1"}},
      .attrs = {{"k", int64_t{0}, "number of elements to take", true},
                axis_attr("axis to take elements along", -1),
                {"largest", true, "whether to take the largest elements, or the smallest"},
                {"sorted", true,
                 "true: the best element comes first; false: elements keep the order of x"}},
      .outputs = {{"value", "x's dtype, extent k along `axis`"},
                  {"index", "i64, value's shape: indices along the axis"}},
      .infer = infer_topk,
      .grad = GradFn([](const GradCtx& c) {
        if (!c.dout(0)) return Values{Value()};
        return Values{internal::scatter_add(
            c.dout(0), c.out(1), {.to = c.in(0).type(), .axis = c.attr<int64_t>("axis")})};
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost = [](const CostCtx& c) { return Cost{.flops = sort_flops(c)}; },
      .in_place = {},
      .lower = Expand{expand_topk},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
