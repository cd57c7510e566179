#include "ops/index/axis_attr.h"
#include "ops/index/sort.h"

namespace fluid {

std::vector<Type> infer_partial_sort(const InferCtx& c) {
  const int64_t axis = require_sortable(c), k = c.attr<int64_t>("k");
  Shape shape = c.in(0).shape;
  Dim& extent = shape[static_cast<size_t>(axis)];
  c.require(k >= 0 && k <= extent.size, "k = " + std::to_string(k) + " is not in [0, " +
                                            extent.str() + "], the extent of axis " +
                                            std::to_string(axis) + " of " + c.in(0).str());
  extent = k;
  return {{c.in(0).dtype, shape, {}}, {i64, shape, {}}};
}

OpDef partial_sort_op() {
  return OpDef{
      .name = "partial_sort",
      .doc =
          "The first k elements of sort, and their indices. Merges drop the elements beyond k, so "
          "the cost is O(n log k) comparisons for n elements.",
      .inputs = {{"x", "numeric tensor, rank >= 1"}},
      .attrs = {{"k", int64_t{0}, "number of elements to keep", true},
                axis_attr("axis to sort along", -1),
                {"descending", false, "whether the largest value comes first"}},
      .outputs = {{"value", "x's dtype, extent k along `axis`"},
                  {"index", "i64, value's shape: indices along the axis"}},
      .infer = infer_partial_sort,
      .grad = GradFn(sort_grad),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) { return Cost{.flops = sort_flops(c, c.attrs.get<int64_t>("k"))}; },
      .in_place = {},
      .lower = Loops{[](const LoopsCtx& c) {
        return sort_kernel(c, {.axis = nonnegative_axis(c.attrs(), c.in_type(0).shape),
                               .keep = c.attr<int64_t>("k"),
                               .descending = c.attr<bool>("descending")});
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
