#include "ops/nn/unfold.h"

#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Expr> unfold_body(const LowerCtx& c) {
  const Shape& x = c.in_type(0).shape;
  const WindowAxes w = window_of_unfold(c.attrs());
  const Expr width = Expr::index(w[1].kernel), taps = Expr::index(w[0].kernel * w[1].kernel);
  const Expr columns = Expr::index(w[1].windows(x[3].size));
  const Expr row = c.out_var(1), window = c.out_var(2);
  const Expr tap = scalar::mod(row, taps);
  const Expr y = w[0].element(scalar::floordiv(window, columns), scalar::floordiv(tap, width));
  const Expr at_x = w[1].element(scalar::mod(window, columns), scalar::mod(tap, width));
  return {c.read_or(0, {c.out_var(0), scalar::floordiv(row, taps), y, at_x}, 0)};
}

}  // namespace

std::vector<AttrDef> unfold_attrs() {
  return {{"kernel", std::vector<int64_t>{}, "height and width of the window", true},
          {"stride", std::vector<int64_t>{1}, "step of the window"},
          {"padding", std::vector<int64_t>{0},
           "zero padding on each side: one number, (height, width), or (top, left, bottom, right)"},
          {"dilation", std::vector<int64_t>{1}, "distance of the taps of the window"}};
}

WindowAxes window_of_unfold(const Attrs& attrs) {
  std::vector<int64_t> kernel = attrs.get<std::vector<int64_t>>("kernel");
  kernel.resize(2, kernel.front());
  return window_axes(attrs, kernel);
}

Shape unfolded_shape(const InferCtx& c, const Shape& x) {
  const WindowAxes w = window_of_unfold(c.attrs());
  const Shape windows = window_output_shape(c, x, w, x[1]);
  return {x[0], x[1].size * w[0].kernel * w[1].kernel, windows[2].size * windows[3].size};
}

OpDef unfold_op() {
  return OpDef{
      .name = "unfold",
      .doc =
          "The windows of x as columns (im2col), like torch.nn.functional.unfold: y[n, (c, ky, "
          "kx), (wy, wx)] is tap (ky, kx) of window (wy, wx) in channel c.",
      .inputs = {{"x", "float [N, C, H, W]"}},
      .attrs = unfold_attrs(),
      .outputs = {{"y", "x's dtype, [N, C * KH * KW, windows]"}},
      .infer =
          [](const InferCtx& c) {
            require_nchw(c, c.in(0));
            require_window_attrs(c, 2);
            return std::vector{Type{c.in(0).dtype, unfolded_shape(c, c.in(0).shape), {}}};
          },
      .grad = GradFn([](const GradCtx& c) {
        const Shape& x = c.in(0).shape();
        const auto list = [&](const char* name) { return c.attr<std::vector<int64_t>>(name); };
        return Values{fold(c.dout(0), {.output = {x[2].size, x[3].size},
                                       .kernel = list("kernel"),
                                       .stride = list("stride"),
                                       .padding = list("padding"),
                                       .dilation = list("dilation")})};
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost = cost_per_element(0),
      .in_place = {},
      .lower = Map{unfold_body},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
