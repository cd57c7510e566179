#include <algorithm>

#include "ops/nn/argmax_indices.h"
#include "ops/nn/pool.h"

namespace fluid {
namespace {

Expr is(const Expr& a, const Expr& b) { return scalar::compare(ScalarOp::eq, a, b); }

/// Whether `tap`, which reads `element`, is the first tap of its window inside the input, along one
/// axis. If all elements of a window are -inf, max pooling returns the index of tap 0, which may be
/// in the padding. The gradient then goes to the first tap inside the input.
Expr first_inside(const WindowAxis& axis, const Expr& element, const Expr& tap) {
  return scalar::logical_or(is(tap, Expr::index(0)),
                            scalar::compare(ScalarOp::lt, element, Expr::index(axis.dilation)));
}

ReduceBody max_pool_grad_body(const LowerCtx& c) {
  const WindowAxes window = pool_windows(c.attrs(), c.out_type().shape);
  const CoveringWindows covering = covering_windows(c, window);
  std::vector<Expr> at = {c.out_var(0), c.out_var(1)};
  at.insert(at.end(), covering.window.begin(), covering.window.end());
  Expr tap = covering.tap[0], first = first_inside(window[0], c.out_var(2), covering.tap[0]);
  for (size_t i = 1; i < window.size(); ++i) {
    tap = tap * static_cast<double>(window[i].kernel) + covering.tap[i];
    first = scalar::logical_and(first, first_inside(window[i], c.out_var(i + 2), covering.tap[i]));
  }
  const Expr position = scalar::cast(c.read_or(1, at, 0), DType::i64);
  Expr largest = is(position, tap);
  if (std::ranges::any_of(window, [](const WindowAxis& a) { return a.before > 0; })) {
    const Expr all_lowest = scalar::logical_and(first, is(position, Expr::index(0)));
    largest = scalar::logical_or(largest, all_lowest);
  }
  return {covering.extents,
          select_if(and_conditions(covering.valid, largest), c.read_or(0, at, 0), 0)};
}

Values max_pool_second_grad(const GradCtx& c) {
  const Value ddx = c.dout(0), position = c.in(1);
  const WindowAxes windows = pool_windows(c.attrs(), ddx.shape());
  std::vector<ArgmaxAxis> axes;
  for (size_t i = 0; i < windows.size(); ++i) {
    const WindowAxis& w = windows[i];
    axes.push_back(
        {.begin = scaled_arange(ddx, position.shape()[i + 2].size, static_cast<double>(w.stride),
                                static_cast<double>(-w.before)),
         .taps = w.kernel,
         .dilation = w.dilation,
         .padded = w.before > 0});
  }
  return {gather_at_argmax(ddx, position, axes), {}};
}

}  // namespace

OpDef max_pool_grad_def(int dims) {
  const std::string pool = "max_pool" + std::to_string(dims) + "d";
  return OpDef{
      .name = pool + "_grad",
      .doc = "Gradient of " + pool + " with respect to its input.",
      .inputs = {{"dy", "gradient of " + pool + "'s result"},
                 {"position", "argmax indices, the second result of the forward op"}},
      .attrs = pool_attrs(dims, {{"input", Type{}, "type of " + pool + "'s input", true}}),
      .outputs = {{"dx", "of type `input`"}},
      .infer =
          [dims](const InferCtx& c) {
            const Type input = pool_grad_type(c, dims);
            const int64_t taps = taps_of(pool_windows(c.attrs(), input.shape));
            const Type position = {argmax_dtype(taps), c.in(0).shape, {}};
            c.require(c.in(1) == position,
                      "expects positions " + position.str() + ", got " + c.in(1).str());
            return std::vector{input};
          },
      .grad = GradFn(max_pool_second_grad),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const WindowAxes window = pool_windows(c.attrs, c.out[0].shape);
            return Cost{.flops = c.numel_out() * static_cast<double>(covering_windows_of(window))};
          },
      .in_place = {},
      .lower = Reduce{Combine::sum, max_pool_grad_body},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

OpDef max_pool2d_grad_op() { return max_pool_grad_def(2); }

}  // namespace fluid
