#include <limits>

#include "ops/nn/window.h"
#include "ops/record.h"

namespace fluid {

OpDef max_pool2d_op() {
  return OpDef{
      .name = "max_pool2d",
      .doc =
          "Max pooling. The first of equal maxima in row-major order wins. Padding counts as minus "
          "infinity, and NaN as the largest value.",
      .inputs = {{"x", "float [N, C, H, W]"}},
      .attrs = {{"kernel", std::vector<int64_t>{}, "window size: one number, or height and width",
                 true},
                {"stride", std::vector<int64_t>{}, "stride of the window; empty: the window size"},
                {"padding", std::vector<int64_t>{0}, "padding on each side"},
                {"dilation", std::vector<int64_t>{1}, "spacing of the window's taps"}},
      .outputs = {{.name = "y", .doc = "[N, C, OH, OW]"},
                  {.name = "position",
                   .doc = "argmax indices, row-major within the window: u8, or i32 if a window has "
                          "more than 256 taps; 0 if all its elements are minus infinity",
                   .auxiliary = true}},
      .infer =
          [](const InferCtx& c) {
            require_nchw(c, c.in(0));
            require_window_attrs(c);
            const Window2d w = window_of(c.attrs());
            const Shape& x = c.in(0).shape;
            const Shape y = window_output_shape(c, x, w, x[1]);
            require_padding_below_window(c, w);
            return std::vector{Type{c.in(0).dtype, y, {}},
                               Type{argmax_dtype(w.y.kernel * w.x.kernel), y, {}}};
          },
      .grad = GradFn([](const GradCtx& c) {
        Attrs attrs = c.attrs();
        attrs.set("input", c.in(0).type());
        return record(*c.op().graph(), "max_pool2d_grad", {c.dout(0), c.out(1)}, attrs, c.op().loc);
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const Window2d w = window_of(c.attrs);
            return Cost{.flops = c.numel_out() * static_cast<double>(w.y.kernel * w.x.kernel)};
          },
      .in_place = {},
      .lower = Reduce{Combine::argmax,
                      [](const LowerCtx& c) {
                        const Window2d w = window_of(c.attrs());
                        const Expr y = w.y.element(c.out_var(2), c.reduce_var(0));
                        const Expr x = w.x.element(c.out_var(3), c.reduce_var(1));
                        constexpr double kLowest = -std::numeric_limits<double>::infinity();
                        return ReduceBody{
                            {w.y.kernel, w.x.kernel},
                            c.read_or(0, {c.out_var(0), c.out_var(1), y, x}, kLowest)};
                      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
