#include "ops/nn/window.h"

namespace fluid {
namespace {

Expr is(const Expr& a, const Expr& b) { return scalar::compare(ScalarOp::eq, a, b); }

/// Along one axis: whether `tap`, which reads `element`, is the first tap of its window inside the
/// input. This is needed when all elements of a window are -inf. max_pool2d then records tap 0,
/// which may lie in the padding. The gradient goes to the first tap inside the input.
Expr first_inside(const WindowAxis& axis, const Expr& element, const Expr& tap) {
  return scalar::logical_or(is(tap, Expr::index(0)),
                            scalar::compare(ScalarOp::lt, element, Expr::index(axis.dilation)));
}

}  // namespace

OpDef max_pool2d_grad_op() {
  return OpDef{
      .name = "max_pool2d_grad",
      .doc = "Gradient of max_pool2d with respect to its input.",
      .inputs = {{"dy", "gradient of max_pool2d's result"},
                 {"position", "argmax indices, the second result of the forward op"}},
      .attrs = {{"kernel", std::vector<int64_t>{}, "as max_pool2d's", true},
                {"stride", std::vector<int64_t>{}, "as max_pool2d's"},
                {"padding", std::vector<int64_t>{0}, "as max_pool2d's"},
                {"dilation", std::vector<int64_t>{1}, "as max_pool2d's"},
                {"input", Type{}, "type of max_pool2d's input", true}},
      .outputs = {{"dx", "of type `input`"}},
      .infer =
          [](const InferCtx& c) {
            const Type& input = c.attr<Type>("input");
            require_nchw(c, input);
            require_window_attrs(c);
            const Window2d w = window_of(c.attrs());
            const Shape y = window_output_shape(c, input.shape, w, input.shape[1]);
            c.require(
                c.in(0) == Type{input.dtype, y, {}},
                "the gradient " + c.in(0).str() + " does not fit to the input " + input.str());
            c.require(c.in(1) == Type{argmax_dtype(w.y.kernel * w.x.kernel), y, {}},
                      "the positions " + c.in(1).str() + " do not fit to the input " + input.str());
            return std::vector{input};
          },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const Window2d w = window_of(c.attrs);
            return Cost{.flops = c.numel_out() * static_cast<double>(w.y.max_covering_windows() *
                                                                     w.x.max_covering_windows())};
          },
      .in_place = {},
      .lower =
          Reduce{Combine::sum,
                 [](const LowerCtx& c) {
                   const Window2d w = window_of(c.attrs());
                   const WindowAxis::CoveringWindow y =
                       w.y.covering_window(c.out_var(2), c.reduce_var(0));
                   const WindowAxis::CoveringWindow x =
                       w.x.covering_window(c.out_var(3), c.reduce_var(1));
                   const std::vector<Expr> at = {c.out_var(0), c.out_var(1), y.window, x.window};
                   const Expr tap = y.tap * static_cast<double>(w.x.kernel) + x.tap;
                   const Expr position = scalar::cast(c.read_or(1, at, 0), DType::i64);
                   Expr largest = is(position, tap);
                   if (w.y.before > 0 || w.x.before > 0) {
                     const Expr first = scalar::logical_and(first_inside(w.y, c.out_var(2), y.tap),
                                                            first_inside(w.x, c.out_var(3), x.tap));
                     const Expr all_lowest =
                         scalar::logical_and(first, is(position, Expr::index(0)));
                     largest = scalar::logical_or(largest, all_lowest);
                   }
                   return ReduceBody{
                       {w.y.max_covering_windows(), w.x.max_covering_windows()},
                       select_if(and_conditions(and_conditions(y.valid, x.valid), largest),
                                 c.read_or(0, at, 0), 0)};
                 }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
