#include "ops/nn/avg_pool2d.h"

#include "ops/record.h"

namespace fluid {

Expr avg_pool2d_divisor(const LowerCtx& c, const Type& input, const Expr& y, const Expr& x) {
  const Window2d w = window_of(c.attrs());
  const DType dtype = compute_dtype(input.dtype);
  const int64_t padding = w.y.before + w.y.after + w.x.before + w.x.after;
  if (padding == 0 || c.attr<bool>("count_include_pad")) {
    return Expr::constant(dtype, static_cast<double>(w.y.kernel * w.x.kernel));
  }
  return scalar::cast(
      w.y.taps_inside(y, input.shape[2].size) * w.x.taps_inside(x, input.shape[3].size), dtype);
}

OpDef avg_pool2d_op() {
  return OpDef{
      .name = "avg_pool2d",
      .doc = "Average pooling.",
      .inputs = {{"x", "float [N, C, H, W]"}},
      .attrs = {{"kernel", std::vector<int64_t>{}, "window size: one number, or height and width",
                 true},
                {"stride", std::vector<int64_t>{}, "stride of the window; empty: the window size"},
                {"padding", std::vector<int64_t>{0}, "zero padding on each side"},
                {"count_include_pad", true, "whether the divisor includes padding elements"}},
      .outputs = {{"y", "[N, C, OH, OW]"}},
      .infer =
          [](const InferCtx& c) {
            require_nchw(c, c.in(0));
            require_window_attrs(c);
            const Shape& x = c.in(0).shape;
            const Window2d w = window_of(c.attrs());
            require_padding_below_window(c, w);
            return std::vector{Type{c.in(0).dtype, window_output_shape(c, x, w, x[1]), {}}};
          },
      .grad = GradFn([](const GradCtx& c) {
        Attrs attrs = c.attrs();
        attrs.set("input", c.in(0).type());
        return record(*c.op().graph(), "avg_pool2d_grad", {c.dout(0)}, attrs, c.op().loc);
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const Window2d w = window_of(c.attrs);
            return Cost{.flops = c.numel_out() * static_cast<double>(w.y.kernel * w.x.kernel)};
          },
      .in_place = {},
      .lower = Reduce{Combine::sum,
                      [](const LowerCtx& c) {
                        const Window2d w = window_of(c.attrs());
                        const Expr oy = c.out_var(2), ox = c.out_var(3);
                        const Expr y = w.y.element(oy, c.reduce_var(0)),
                                   x = w.x.element(ox, c.reduce_var(1));
                        return ReduceBody{{w.y.kernel, w.x.kernel},
                                          c.read_or(0, {c.out_var(0), c.out_var(1), y, x}, 0) /
                                              avg_pool2d_divisor(c, c.in_type(0), oy, ox)};
                      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
