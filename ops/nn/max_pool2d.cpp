#include <limits>

#include "ops/nn/window.h"
#include "ops/record.h"

namespace fluid {

OpDef max_pool2d_op() {
  return OpDef{
      .name = "max_pool2d",
      .doc =
          "Largest element of each window; ties go to the first in row-major order, padding is "
          "minus infinity, and NaN wins.",
      .inputs = {{"x", "float [N, C, H, W]"}},
      .attrs = {{"kernel", std::vector<int64_t>{}, "size of the window", true},
                {"stride", std::vector<int64_t>{}, "step of the window; none: the kernel's size"},
                {"padding", std::vector<int64_t>{0}, "around the input"},
                {"dilation", std::vector<int64_t>{1}, "distance of the taps"}},
      .outputs = {{.name = "y", .doc = "[N, C, OH, OW]"},
                  {.name = "position",
                   .doc = "of the largest element in its window, row-major: u8, or i32 for a "
                          "window of more than 256 taps; 0 where all of it is minus infinity",
                   .auxiliary = true}},
      .infer =
          [](const InferCtx& c) {
            require_images(c, c.in(0));
            require_window(c);
            const Window2d w = window_of(c.attrs());
            const Shape& x = c.in(0).shape;
            const Shape y = window_shape(c, x, w, x[1]);
            require_padding_below_window(c, w);
            return std::vector{Type{c.in(0).dtype, y, {}},
                               Type{position_dtype(w.y.kernel * w.x.kernel), y, {}}};
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
