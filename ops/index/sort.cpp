#include "ops/index/sort.h"

#include "ops/index/axis_attr.h"

namespace fluid {

OpDef sort_op() {
  return OpDef{
      .name = "sort",
      .doc =
          "Sorts along `axis`; equal elements keep their order, and NaN counts as the largest "
          "value, as in torch.sort with stable=True. The gradient of a value goes to the element "
          "that it comes from.",
      .inputs = {{"x", "numeric tensor, rank >= 1"}},
      .attrs = {axis_attr("axis to sort along", -1),
                {"descending", false, "whether the largest value comes first"}},
      .outputs = {{"value", "same type as x"}, {"index", "i64, x's shape: indices along the axis"}},
      .infer =
          [](const InferCtx& c) {
            require_sortable(c);
            return std::vector{c.in(0), Type{i64, c.in(0).shape, {}}};
          },
      .grad = GradFn(sort_grad),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            return Cost{.flops = sort_flops(c, sorted_extent(c.attrs, c.in[0].shape))};
          },
      .in_place = {{0, 0}},
      .lower = Loops{[](const LoopsCtx& c) {
        const Shape& shape = c.in_type(0).shape;
        return sort_kernel(c, {.axis = nonnegative_axis(c.attrs(), shape),
                               .keep = sorted_extent(c.attrs(), shape),
                               .descending = c.attr<bool>("descending")});
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
