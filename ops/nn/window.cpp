#include "ops/nn/window.h"

#include <algorithm>

namespace fluid {
namespace {

using List = std::vector<int64_t>;

int64_t pick(const List& list, size_t axis) { return list.size() == 1 ? list[0] : list[axis]; }

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

void require_pair(const InferCtx& c, std::string_view name, int64_t least, bool may_be_empty) {
  if (!c.attrs().has(name)) return;
  const auto& list = c.attr<List>(name);
  const std::string quoted = "attribute '" + std::string(name) + "'";
  c.require(list.size() == 1 || list.size() == 2 || (may_be_empty && list.empty()),
            quoted + " takes one number, or one for the height and one for the width, not " +
                std::to_string(list.size()));
  c.require(
      std::ranges::all_of(list, [&](int64_t n) { return n >= least && n <= kMaxWindow; }),
      quoted + " must lie between " + std::to_string(least) + " and " + std::to_string(kMaxWindow));
}

}  // namespace

int64_t WindowAxis::windows(int64_t in) const {
  const int64_t room = in + before + after - effective_kernel();
  return room < 0 ? 0 : room / stride + 1;
}

Expr WindowAxis::element(const Expr& window, const Expr& tap) const {
  return window * static_cast<double>(stride) + tap * static_cast<double>(dilation) -
         static_cast<double>(before);
}

Expr WindowAxis::taps_inside(const Expr& window, int64_t in) const {
  const Expr begin = element(window, Expr::index(0));
  return scalar::min(begin + static_cast<double>(kernel), Expr::index(in)) -
         scalar::max(begin, Expr::index(0));
}

int64_t WindowAxis::max_covering_windows() const {
  return dilation == 1 ? ceil_div(kernel, stride) : kernel;
}

WindowAxis::CoveringWindow WindowAxis::covering_window(const Expr& element,
                                                       const Expr& candidate) const {
  const Expr position = element + static_cast<double>(before);
  const Expr step = Expr::index(stride);
  if (dilation == 1) {
    const Expr window = scalar::floordiv(position, step) - candidate;
    const Expr tap = scalar::mod(position, step) + candidate * static_cast<double>(stride);
    const bool exact = max_covering_windows() * stride == kernel;
    return {window, tap, exact ? Expr() : scalar::compare(ScalarOp::lt, tap, Expr::index(kernel))};
  }
  const Expr first = position - candidate * static_cast<double>(dilation);
  const Expr valid = stride == 1
                         ? Expr()
                         : scalar::compare(ScalarOp::eq, scalar::mod(first, step), Expr::index(0));
  return {scalar::floordiv(first, step), candidate, valid};
}

Window2d window_of(const Attrs& attrs, int64_t kernel_y, int64_t kernel_x) {
  const List kernel = {kernel_y, kernel_x};
  const auto& strides = attrs.get<List>("stride");
  const List stride = strides.empty() ? kernel : strides;
  const auto padding = attrs.get<List>("padding");
  const auto dilation = attrs.get_or<List>("dilation", {1});
  auto axis = [&](size_t i) {
    const int64_t before = pick(padding, i);
    const int64_t after = padding.size() == 4 ? padding[i + 2] : before;
    return WindowAxis{kernel[i], pick(stride, i), pick(dilation, i), before, after};
  };
  return {axis(0), axis(1)};
}

Window2d window_of(const Attrs& attrs) {
  const auto& kernel = attrs.get<List>("kernel");
  return window_of(attrs, pick(kernel, 0), pick(kernel, 1));
}

int64_t AdaptiveAxis::max_window_size() const {
  int64_t widest = 0;
  for (int64_t i = 0; i < out; ++i) {
    widest = std::max(widest, ceil_div((i + 1) * in, out) - i * in / out);
  }
  return widest;
}

Expr AdaptiveAxis::begin(const Expr& window) const {
  return scalar::floordiv(window * static_cast<double>(in), Expr::index(out));
}

Expr AdaptiveAxis::end(const Expr& window) const {
  return scalar::floordiv(window * static_cast<double>(in) + static_cast<double>(in + out - 1),
                          Expr::index(out));
}

Expr AdaptiveAxis::contains(const Expr& window, const Expr& i) const {
  if (is_uniform()) return {};
  return scalar::compare(ScalarOp::lt, begin(window) + i, end(window));
}

Adaptive2d adaptive_windows(const Shape& input, const Shape& output) {
  return {{input[2].size, output[2].size}, {input[3].size, output[3].size}};
}

Expr adaptive_window_element(const LowerCtx& c, const Adaptive2d& w, double otherwise,
                             const std::function<Expr(const Expr&)>& map) {
  const Expr oy = c.out_var(2), ox = c.out_var(3), ky = c.reduce_var(0), kx = c.reduce_var(1);
  const Expr inside = and_conditions(w.y.contains(oy, ky), w.x.contains(ox, kx));
  const std::vector<Expr> at = {c.out_var(0), c.out_var(1), w.y.begin(oy) + ky, w.x.begin(ox) + kx};
  const Expr x = inside ? c.read_or(0, at, otherwise) : c.read(0, at);
  return select_if(inside, map ? map(x) : x, otherwise);
}

Type infer_adaptive(const InferCtx& c, const Type& input) {
  require_nchw(c, input);
  require_pair(c, "output", 1, false);
  const auto& output = c.attr<List>("output");
  const Shape& x = input.shape;
  c.require(x[2].size > 0 && x[3].size > 0, "the images of " + input.str() + " hold no element");
  return {input.dtype, {x[0], x[1], pick(output, 0), pick(output, 1)}, {}};
}

Type infer_adaptive_grad(const InferCtx& c) {
  const Type& input = c.attr<Type>("input");
  const Type& dy = c.in(0);
  require_nchw(c, input);
  require_nchw(c, dy);
  const Shape &x = input.shape, &y = dy.shape;
  c.require(dy.dtype == input.dtype && y[0] == x[0] && y[1] == x[1] && x[2].size > 0 &&
                x[3].size > 0 && y[2].size > 0 && y[3].size > 0,
            "the gradient " + dy.str() + " does not fit to the input " + input.str());
  return input;
}

Expr and_conditions(const Expr& a, const Expr& b) {
  if (!a) return b;
  return b ? scalar::logical_and(a, b) : a;
}

Expr select_if(const Expr& condition, const Expr& value, double otherwise) {
  if (!condition) return value;
  return scalar::select(condition, value, Expr::constant(value.dtype(), otherwise));
}

void require_nchw(const InferCtx& c, const Type& type) {
  const Shape& s = type.shape;
  c.require(is_float(type.dtype) && s.rank() == 4 &&
                std::none_of(s.begin() + 1, s.end(), [](const Dim& d) { return d.batch; }),
            "expects a float tensor [N, C, H, W], got " + type.str());
}

void require_window_attrs(const InferCtx& c) {
  require_pair(c, "kernel", 1, false);
  require_pair(c, "stride", 1, c.attrs().has("kernel"));
  require_pair(c, "dilation", 1, false);
  const auto& padding = c.attr<List>("padding");
  c.require(padding.size() == 1 || padding.size() == 2 || padding.size() == 4,
            "attribute 'padding' takes one number, two (height, width) or four (top, left, bottom, "
            "right), not " +
                std::to_string(padding.size()));
  c.require(std::ranges::all_of(padding, [](int64_t n) { return n >= 0 && n <= kMaxWindow; }),
            "attribute 'padding' must lie between 0 and " + std::to_string(kMaxWindow));
}

Shape window_output_shape(const InferCtx& c, const Shape& in, const Window2d& w, Dim channels) {
  const int64_t height = w.y.windows(in[2].size), width = w.x.windows(in[3].size);
  c.require(height > 0 && width > 0,
            "a window that reaches over " + std::to_string(w.y.effective_kernel()) + " x " +
                std::to_string(w.x.effective_kernel()) +
                " elements does not fit into the padded input " + in.str());
  return {in[0], channels, height, width};
}

void require_padding_below_window(const InferCtx& c, const Window2d& w) {
  auto fits = [](const WindowAxis& a) {
    return std::max(a.before, a.after) < a.effective_kernel();
  };
  c.require(fits(w.y) && fits(w.x),
            "the padding must be smaller than the window, or some windows hold no element");
}

DType argmax_dtype(int64_t size) { return size <= 256 ? u8 : i32; }

}  // namespace fluid
