#include "ops/nn/avg_pool2d.h"
#include "ops/record.h"

namespace fluid {

OpDef avg_pool2d_grad_op() {
  return OpDef{
      .name = "avg_pool2d_grad",
      .doc = "Gradient of avg_pool2d with respect to its input.",
      .inputs = {{"dy", "gradient of avg_pool2d's result"}},
      .attrs = {{"kernel", std::vector<int64_t>{}, "as avg_pool2d's", true},
                {"stride", std::vector<int64_t>{}, "as avg_pool2d's"},
                {"padding", std::vector<int64_t>{0}, "as avg_pool2d's"},
                {"count_include_pad", true, "as avg_pool2d's"},
                {"input", Type{}, "type of avg_pool2d's input", true}},
      .outputs = {{"dx", "of type `input`"}},
      .infer =
          [](const InferCtx& c) {
            const Type& input = c.attr<Type>("input");
            require_nchw(c, input);
            require_window_attrs(c);
            const Window2d w = window_of(c.attrs());
            const Type y = {
                input.dtype, window_output_shape(c, input.shape, w, input.shape[1]), {}};
            c.require(c.in(0) == y, "expects a gradient " + y.str() + ", got " + c.in(0).str());
            return std::vector{input};
          },
      .grad = GradFn([](const GradCtx& c) {
        Attrs attrs = c.attrs();
        attrs.erase("input");
        return record(*c.op().graph(), "avg_pool2d", {c.dout(0)}, attrs, c.op().loc);
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const Window2d w = window_of(c.attrs);
            return Cost{.flops = 2 * c.numel_out() *
                                 static_cast<double>(w.y.max_covering_windows() *
                                                     w.x.max_covering_windows())};
          },
      .in_place = {},
      .lower =
          Reduce{
              Combine::sum,
              [](const LowerCtx& c) {
                const Window2d w = window_of(c.attrs());
                const WindowAxis::CoveringWindow y =
                    w.y.covering_window(c.out_var(2), c.reduce_var(0));
                const WindowAxis::CoveringWindow x =
                    w.x.covering_window(c.out_var(3), c.reduce_var(1));
                const Expr dy = c.read_or(0, {c.out_var(0), c.out_var(1), y.window, x.window}, 0);
                return ReduceBody{
                    {w.y.max_covering_windows(), w.x.max_covering_windows()},
                    select_if(and_conditions(y.valid, x.valid),
                              dy / avg_pool2d_divisor(c, c.out_type(), y.window, x.window), 0)};
              }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
