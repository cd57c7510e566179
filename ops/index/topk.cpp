#include "ops/elementwise.h"
#include "ops/index/axis_attr.h"
#include "ops/index/sort.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"

namespace fluid {
namespace {

Values expand_topk(const ExpandCtx& c) {
  const int64_t axis = c.attr<int64_t>("axis");
  Values best = internal::partial_sort(
      c.in(0), {.k = c.attr<int64_t>("k"), .axis = axis, .descending = c.attr<bool>("largest")});
  if (c.attr<bool>("sorted") || best[1].shape().numel().size == 0) return best;
  const Value index = sort(best[1], {.axis = axis})[0];
  return {take_along_axis(c.in(0), index, {.axis = axis}), index};
}

}  // namespace

OpDef topk_op() {
  return OpDef{
      .name = "topk",
      .doc =
          "The k largest or smallest elements along `axis` and their indices, like torch.topk and "
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
      .infer = infer_partial_sort,
      .grad = GradFn(sort_grad),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) { return Cost{.flops = sort_flops(c, c.attrs.get<int64_t>("k"))}; },
      .in_place = {},
      .lower = Expand{expand_topk},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
