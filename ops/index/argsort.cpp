#include "ops/elementwise.h"
#include "ops/index/axis_attr.h"
#include "ops/index/sort.h"
#include "ops/operators.h"

namespace fluid {

OpDef argsort_op() {
  return OpDef{
      .name = "argsort",
      .doc =
          "Indices that sort x along `axis`; equal elements keep their order, and NaN counts as "
          "the "
          "largest value, as in torch.argsort with stable=True.",
      .inputs = {{"x", "numeric tensor, rank >= 1"}},
      .attrs = {axis_attr("axis to sort along", -1),
                {"descending", false, "whether the largest value comes first"}},
      .outputs = {{"index", "i64, x's shape: indices along the axis"}},
      .infer =
          [](const InferCtx& c) {
            require_sortable(c);
            return std::vector{Type{i64, c.in(0).shape, {}}};
          },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            return Cost{.flops = sort_flops(c, sorted_extent(c.attrs, c.in[0].shape))};
          },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        return Values{sort(c.in(0), {.axis = c.attr<int64_t>("axis"),
                                     .descending = c.attr<bool>("descending")})[1]};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
