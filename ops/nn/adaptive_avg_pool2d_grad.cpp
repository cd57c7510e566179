#include "ops/nn/adaptive_avg_pool2d.h"
#include "ops/record.h"

namespace fluid {

OpDef adaptive_avg_pool2d_grad_op() {
  return OpDef{
      .name = "adaptive_avg_pool2d_grad",
      .doc = "Gradient of adaptive_avg_pool2d with respect to its input.",
      .inputs = {{"dy", "gradient of adaptive_avg_pool2d's result"}},
      .attrs = {{"input", Type{}, "type of adaptive_avg_pool2d's input", true}},
      .outputs = {{"dx", "of type `input`"}},
      .infer = [](const InferCtx& c) { return std::vector{infer_adaptive_pool_grad(c)}; },
      .grad = GradFn([](const GradCtx& c) {
        const Shape& y = c.in(0).shape();
        return record(*c.op().graph(), "adaptive_avg_pool2d", {c.dout(0)},
                      {{"output", std::vector<int64_t>{y[2].size, y[3].size}}}, c.op().loc);
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const Adaptive2d covers = adaptive_windows(c.in[0].shape, c.out[0].shape);
            return Cost{.flops = 2 * c.numel_out() *
                                 static_cast<double>(covers.y.max_window_size() *
                                                     covers.x.max_window_size())};
          },
      .in_place = {},
      .lower = Reduce{Combine::sum,
                      [](const LowerCtx& c) {
                        const Shape& dx = c.out_type().shape;
                        const Shape& dy = c.in_type(0).shape;
                        const Adaptive2d windows = adaptive_windows(dx, dy),
                                         covers = adaptive_windows(dy, dx);
                        const Expr y = c.out_var(2), x = c.out_var(3), my = c.reduce_var(0),
                                   mx = c.reduce_var(1);
                        const Expr inside =
                            and_conditions(covers.y.contains(y, my), covers.x.contains(x, mx));
                        const Expr oy = covers.y.begin(y) + my, ox = covers.x.begin(x) + mx;
                        const std::vector<Expr> at = {c.out_var(0), c.out_var(1), oy, ox};
                        const Expr gradient = inside ? c.read_or(0, at, 0) : c.read(0, at);
                        const Expr divisor =
                            adaptive_avg_pool2d_divisor(windows, oy, ox, c.out_type().dtype);
                        return ReduceBody{{covers.y.max_window_size(), covers.x.max_window_size()},
                                          select_if(inside, gradient / divisor, 0)};
                      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
