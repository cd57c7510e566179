#include <limits>

#include "ops/nn/window.h"
#include "ops/record.h"

namespace fluid {

OpDef adaptive_max_pool2d_op() {
  return OpDef{
      .name = "adaptive_max_pool2d",
      .doc =
          "Max pooling with a given output size; adaptive_avg_pool2d defines the windows. The "
          "first of equal maxima in row-major order wins. NaN counts as the largest value.",
      .inputs = {{"x", "float [N, C, H, W]"}},
      .attrs = {{"output", std::vector<int64_t>{}, "output size: one number, or height and width",
                 true}},
      .outputs = {{.name = "y", .doc = "[N, C, OH, OW]"},
                  {.name = "position",
                   .doc = "argmax indices, row-major within a window of the largest size: u8, or "
                          "i32 if such a window has more than 256 elements",
                   .auxiliary = true}},
      .infer =
          [](const InferCtx& c) {
            const Type y = infer_adaptive_pool(c, c.in(0));
            const Adaptive2d w = adaptive_windows(c.in(0).shape, y.shape);
            return std::vector{
                y, Type{argmax_dtype(w.y.max_window_size() * w.x.max_window_size()), y.shape, {}}};
          },
      .grad = GradFn([](const GradCtx& c) {
        return record(*c.op().graph(), "adaptive_max_pool2d_grad", {c.dout(0), c.out(1)},
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
      .lower = Reduce{Combine::argmax,
                      [](const LowerCtx& c) {
                        constexpr double kLowest = -std::numeric_limits<double>::infinity();
                        const Adaptive2d w =
                            adaptive_windows(c.in_type(0).shape, c.out_type().shape);
                        return ReduceBody{{w.y.max_window_size(), w.x.max_window_size()},
                                          adaptive_window_element(c, w, kLowest)};
                      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
