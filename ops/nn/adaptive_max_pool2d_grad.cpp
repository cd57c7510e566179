#include "ops/nn/argmax_indices.h"
#include "ops/nn/window.h"
#include "ops/operators.h"

namespace fluid {
namespace {

Values adaptive_max_pool2d_second_grad(const GradCtx& c) {
  const Value ddx = c.dout(0), position = c.in(1);
  const Adaptive2d windows = adaptive_windows(ddx.shape(), position.shape());
  std::vector<ArgmaxAxis> axes;
  for (const AdaptiveAxis& w : {windows.y, windows.x}) {
    const Value scaled = scaled_arange(ddx, w.out, static_cast<double>(w.in));
    axes.push_back(
        {.begin = floor(scaled / static_cast<double>(w.out)), .taps = w.max_window_size()});
  }
  return {gather_at_argmax(ddx, position, axes), {}};
}

}  // namespace

OpDef adaptive_max_pool2d_grad_op() {
  return OpDef{
      .name = "adaptive_max_pool2d_grad",
      .doc = "Gradient of adaptive_max_pool2d with respect to its input.",
      .inputs = {{"dy", "gradient of adaptive_max_pool2d's result"},
                 {"position", "argmax indices, the second result of the forward op"}},
      .attrs = {{"input", Type{}, "type of adaptive_max_pool2d's input", true}},
      .outputs = {{"dx", "of type `input`"}},
      .infer =
          [](const InferCtx& c) {
            const Type input = infer_adaptive_pool_grad(c);
            const Adaptive2d w = adaptive_windows(input.shape, c.in(0).shape);
            const Type position = {
                argmax_dtype(w.y.max_window_size() * w.x.max_window_size()), c.in(0).shape, {}};
            c.require(c.in(1) == position,
                      "expects positions " + position.str() + ", got " + c.in(1).str());
            return std::vector{input};
          },
      .grad = GradFn(adaptive_max_pool2d_second_grad),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const Adaptive2d covers = adaptive_windows(c.in[0].shape, c.out[0].shape);
            return Cost{.flops = c.numel_out() * static_cast<double>(covers.y.max_window_size() *
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
                        const Expr recorded =
                            scalar::cast(inside ? c.read_or(1, at, 0) : c.read(1, at), DType::i64);
                        const Expr position = (y - windows.y.begin(oy)) *
                                                  static_cast<double>(windows.x.max_window_size()) +
                                              (x - windows.x.begin(ox));
                        const Expr largest = scalar::compare(ScalarOp::eq, recorded, position);
                        const Expr gradient = inside ? c.read_or(0, at, 0) : c.read(0, at);
                        return ReduceBody{{covers.y.max_window_size(), covers.x.max_window_size()},
                                          select_if(and_conditions(inside, largest), gradient, 0)};
                      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
