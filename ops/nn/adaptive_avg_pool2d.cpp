#include "ops/nn/adaptive_avg_pool2d.h"

#include "ops/record.h"

namespace fluid {

Expr adaptive_avg_pool2d_divisor(const Adaptive2d& w, const Expr& y, const Expr& x, DType dtype) {
  const Expr height =
      w.y.is_uniform() ? Expr::index(w.y.max_window_size()) : w.y.end(y) - w.y.begin(y);
  const Expr width =
      w.x.is_uniform() ? Expr::index(w.x.max_window_size()) : w.x.end(x) - w.x.begin(x);
  return scalar::cast(height * width, compute_dtype(dtype));
}

OpDef adaptive_avg_pool2d_op() {
  return OpDef{
      .name = "adaptive_avg_pool2d",
      .doc =
          "Average pooling with a given output size. Window i of n over m elements is [floor(i m / "
          "n), ceil((i + 1) m / n)).",
      .inputs = {{"x", "float [N, C, H, W]"}},
      .attrs = {{"output", std::vector<int64_t>{}, "output size: one number, or height and width",
                 true}},
      .outputs = {{"y", "[N, C, OH, OW]"}},
      .infer = [](const InferCtx& c) { return std::vector{infer_adaptive_pool(c, c.in(0))}; },
      .grad = GradFn([](const GradCtx& c) {
        return record(*c.op().graph(), "adaptive_avg_pool2d_grad", {c.dout(0)},
                      {{"input", c.in(0).type()}}, c.op().loc);
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const Adaptive2d w = adaptive_windows(c.in[0].shape, c.out[0].shape);
            return Cost{.flops = c.numel_out() * static_cast<double>(w.y.max_window_size() *
                                                                     w.x.max_window_size())};
          },
      .in_place = {},
      .lower = Reduce{Combine::sum,
                      [](const LowerCtx& c) {
                        const Adaptive2d w =
                            adaptive_windows(c.in_type(0).shape, c.out_type().shape);
                        const Expr divisor = adaptive_avg_pool2d_divisor(
                            w, c.out_var(2), c.out_var(3), c.out_type().dtype);
                        const auto share = [&](const Expr& x) { return x / divisor; };
                        return ReduceBody{{w.y.max_window_size(), w.x.max_window_size()},
                                          adaptive_window_element(c, w, 0, share)};
                      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
