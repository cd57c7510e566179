#include "ops/elementwise.h"
#include "ops/index/axis_attr.h"
#include "ops/index/scatter.h"
#include "ops/operators.h"

namespace fluid {

OpDef scatter_add_op() {
  return OpDef{
      .name = "scatter_add",
      .doc =
          "Zeros of type `to`, to which scatter adds the updates: the gradient of "
          "take_along_axis.",
      .inputs = {{"updates", "float tensor"}, {"index", "integer, same shape, in range"}},
      .attrs = {{"to", Type{}, "type of the result: updates' type except along `axis`", true},
                axis_attr("axis that the index addresses", 0)},
      .outputs = {{"y", "of type `to`"}},
      .infer =
          [](const InferCtx& c) {
            require_float(c, 0);
            const Type& to = c.attr<Type>("to");
            require_scatter_shapes(c, to, c.in(1), c.in(0), nonnegative_axis(c, to.shape));
            return std::vector{to};
          },
      .grad = GradFn([](const GradCtx& c) {
        return Values{take_along_axis(c.dout(0), c.in(1), {.axis = c.attr<int64_t>("axis")}), {}};
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_in(0) + c.numel_out()}; },
      .in_place = {},
      .lower = Loops{[](const LoopsCtx& c) {
        return scatter_lines_kernel(c, {.initial = {}, .index = 1, .updates = 0}, "add");
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
