#include "ops/elementwise.h"
#include "ops/nn/unfold.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_fold(const InferCtx& c) {
  require_float(c, 0);
  require_window_attrs(c, 2);
  const Type& x = c.in(0);
  const auto& output = c.attr<std::vector<int64_t>>("output");
  c.require(output.size() == 2, "attribute 'output' takes a height and a width");
  const WindowAxes w = window_of_unfold(c.attrs());
  const int64_t taps = w[0].kernel * w[1].kernel;
  c.require(
      x.shape.rank() == 3 && !x.shape[1].batch && !x.shape[2].batch && x.shape[1].size % taps == 0,
      "expects [N, C * " + std::to_string(taps) + ", windows], got " + x.str());
  const Shape y = {x.shape[0], x.shape[1].size / taps, output[0], output[1]};
  const Type expected{x.dtype, unfolded_shape(c, y), {}};
  c.require(x == expected,
            "expects " + expected.str() + " for a result " + y.str() + ", got " + x.str());
  return {Type{x.dtype, y, {}}};
}

ReduceBody fold_body(const LowerCtx& c) {
  const WindowAxes w = window_of_unfold(c.attrs());
  const Shape& shape = c.out_type().shape;
  const WindowAxis::CoveringWindow y = w[0].covering_window(c.out_var(2), c.reduce_var(0));
  const WindowAxis::CoveringWindow x = w[1].covering_window(c.out_var(3), c.reduce_var(1));
  const int64_t rows = w[0].windows(shape[2].size), columns = w[1].windows(shape[3].size);
  const auto inside = [](const Expr& window, int64_t count) {
    return scalar::logical_and(scalar::compare(ScalarOp::ge, window, Expr::index(0)),
                               scalar::compare(ScalarOp::lt, window, Expr::index(count)));
  };
  const Expr valid =
      and_conditions(and_conditions(y.valid, x.valid),
                     scalar::logical_and(inside(y.window, rows), inside(x.window, columns)));
  // An invalid window reads column -1, for which read_or() returns 0.
  const Expr column =
      scalar::select(valid, y.window * Expr::index(columns) + x.window, Expr::index(-1));
  const Expr row =
      (c.out_var(1) * Expr::index(w[0].kernel) + y.tap) * Expr::index(w[1].kernel) + x.tap;
  return {{w[0].max_covering_windows(), w[1].max_covering_windows()},
          c.read_or(0, {c.out_var(0), row, column}, 0)};
}

}  // namespace

OpDef fold_op() {
  std::vector<AttrDef> attrs = unfold_attrs();
  attrs.insert(attrs.begin(),
               {"output", std::vector<int64_t>{}, "height and width of the result", true});
  return OpDef{
      .name = "fold",
      .doc =
          "Sums of the columns of x at the places of their windows (col2im), like "
          "torch.nn.functional.fold, and Col2Im of ONNX in two dimensions.",
      .inputs = {{"x", "float [N, C * KH * KW, windows]"}},
      .attrs = attrs,
      .outputs = {{"y", "x's dtype, [N, C, H, W]"}},
      .infer = infer_fold,
      .grad = GradFn([](const GradCtx& c) {
        const auto list = [&](const char* name) { return c.attr<std::vector<int64_t>>(name); };
        return Values{unfold(c.dout(0), {.kernel = list("kernel"),
                                         .stride = list("stride"),
                                         .padding = list("padding"),
                                         .dilation = list("dilation")})};
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const WindowAxes w = window_of_unfold(c.attrs);
            return Cost{.flops = c.numel_out() * static_cast<double>(w[0].max_covering_windows() *
                                                                     w[1].max_covering_windows())};
          },
      .in_place = {},
      .lower = Reduce{Combine::sum, fold_body},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
