#include "ops/nn/window.h"

#include <algorithm>

namespace fluid {
namespace {

using List = std::vector<int64_t>;

int64_t pick(const List& list, size_t axis) { return list.size() == 1 ? list[0] : list[axis]; }

/// Throws UserError unless all elements of `list`, the value of attribute `name`, lie between
/// `least` and kMaxWindow.
void require_between(const InferCtx& c, std::string_view name, const List& list, int64_t least) {
  for (const int64_t n : list) {
    c.require(n >= least && n <= kMaxWindow,
              "attribute '" + std::string(name) + "' must lie between " + std::to_string(least) +
                  " and " + std::to_string(kMaxWindow) + ", not be " + std::to_string(n));
  }
}

void require_list(const InferCtx& c, std::string_view name, int dims, int64_t least,
                  bool may_be_empty) {
  if (!c.attrs().has(name)) return;
  const auto& list = c.attr<List>(name);
  const std::string quoted = "attribute '" + std::string(name) + "'";
  c.require(list.size() == 1 || list.size() == static_cast<size_t>(dims) ||
                (may_be_empty && list.empty()),
            quoted + " takes one " + one_per_dimension_text(dims) + ", not " +
                std::to_string(list.size()));
  require_between(c, name, list, least);
}

/// Returns the extents as text, such as "2 x 3".
std::string extents_text(const List& extents) {
  std::string text;
  for (const int64_t n : extents) text += (text.empty() ? "" : " x ") + std::to_string(n);
  return text;
}

}  // namespace

WindowAxes window_axes(const Attrs& attrs, const List& kernel) {
  const auto& strides = attrs.get<List>("stride");
  const List stride = strides.empty() ? kernel : strides;
  const auto& padding = attrs.get<List>("padding");
  const auto dilation = attrs.get_or<List>("dilation", {1});
  const bool has_after = padding.size() == 2 * kernel.size();
  WindowAxes axes;
  for (size_t i = 0; i < kernel.size(); ++i) {
    const int64_t before = pick(padding, i);
    const int64_t after = has_after ? padding[i + kernel.size()] : before;
    axes.push_back({kernel[i], pick(stride, i), pick(dilation, i), before, after});
  }
  return axes;
}

WindowAxes pool_windows(const Attrs& attrs, const Shape& input) {
  const auto& given = attrs.get<List>("kernel");
  List kernel;
  for (size_t i = 0; i + 2 < input.size(); ++i) kernel.push_back(pick(given, i));
  WindowAxes axes = window_axes(attrs, kernel);
  if (!attrs.get<bool>("ceil_mode")) return axes;
  for (size_t i = 0; i < axes.size(); ++i) axes[i].apply_ceil_mode(input[i + 2].size);
  return axes;
}

Window2d window_of(const Attrs& attrs, int64_t kernel_y, int64_t kernel_x) {
  const WindowAxes axes = window_axes(attrs, {kernel_y, kernel_x});
  return {axes[0], axes[1]};
}

int64_t taps_of(const WindowAxes& window) {
  int64_t taps = 1;
  for (const WindowAxis& axis : window) taps *= axis.kernel;
  return taps;
}

int64_t covering_windows_of(const WindowAxes& window) {
  int64_t windows = 1;
  for (const WindowAxis& axis : window) windows *= axis.max_covering_windows();
  return windows;
}

std::vector<Expr> window_element(const LowerCtx& c, const WindowAxes& window, const Expr& channel,
                                 size_t first) {
  std::vector<Expr> index = {c.out_var(0), channel};
  for (size_t i = 0; i < window.size(); ++i) {
    index.push_back(window[i].element(c.out_var(i + 2), c.reduce_var(first + i)));
  }
  return index;
}

CoveringWindows covering_windows(const LowerCtx& c, const WindowAxes& window, size_t first) {
  CoveringWindows all;
  for (size_t i = 0; i < window.size(); ++i) {
    const auto one = window[i].covering_window(c.out_var(i + 2), c.reduce_var(first + i));
    all.extents.emplace_back(window[i].max_covering_windows());
    all.window.push_back(one.window);
    all.tap.push_back(one.tap);
    all.valid = and_conditions(all.valid, one.valid);
  }
  return all;
}

Type infer_adaptive_pool(const InferCtx& c, const Type& input) {
  require_nchw(c, input);
  require_list(c, "output", 2, 1, false);
  const auto& output = c.attr<List>("output");
  const Shape& x = input.shape;
  c.require(x[2].size > 0 && x[3].size > 0, "the images of " + input.str() + " hold no element");
  return {input.dtype, {x[0], x[1], pick(output, 0), pick(output, 1)}, {}};
}

Type infer_adaptive_pool_grad(const InferCtx& c) {
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

Expr select_if(const Expr& condition, const Expr& value, double fallback) {
  if (!condition) return value;
  return scalar::select(condition, value, Expr::constant(value.dtype(), fallback));
}

std::string spatial_names(int dims, const std::string& prefix) {
  if (dims == 1) return prefix + "L";
  return (dims == 3 ? prefix + "D, " : "") + prefix + "H, " + prefix + "W";
}

std::string one_per_dimension_text(int dims) {
  if (dims == 0) return "number, or one per spatial dimension";
  if (dims == 1) return "number";
  if (dims == 2) return "number, or one for the height and one for the width";
  return "number, or one each for the depth, the height and the width";
}

std::string padding_lengths_text(int dims) {
  if (dims == 0) return "one number, one per spatial dimension, or all before, then all after";
  if (dims == 1) return "one number or two (before, after)";
  if (dims == 2) return "one number, two (height, width) or four (top, left, bottom, right)";
  return "one number, three (depth, height, width) or six (all before, then all after)";
}

void require_spatial_input(const InferCtx& c, const Type& type, int dims) {
  const Shape& s = type.shape;
  c.require(is_float(type.dtype) && s.size() == static_cast<size_t>(dims) + 2 &&
                std::none_of(s.begin() + 1, s.end(), [](const Dim& d) { return d.batch; }),
            "expects a float tensor [N, C, " + spatial_names(dims) + "], got " + type.str());
}

void require_nchw(const InferCtx& c, const Type& type) { require_spatial_input(c, type, 2); }

void require_window_attrs(const InferCtx& c, int dims) {
  require_list(c, "kernel", dims, 1, false);
  require_list(c, "stride", dims, 1, c.attrs().has("kernel"));
  require_list(c, "dilation", dims, 1, false);
  const auto& padding = c.attr<List>("padding");
  const auto size = static_cast<int>(padding.size());
  c.require(
      size == 1 || size == dims || size == 2 * dims,
      "attribute 'padding' takes " + padding_lengths_text(dims) + ", not " + std::to_string(size));
  require_between(c, "padding", padding, 0);
}

Shape window_output_shape(const InferCtx& c, const Shape& in, const WindowAxes& w, Dim channels) {
  Shape out = {in[0], channels};
  List reach;
  bool fits = true;
  for (size_t i = 0; i < w.size(); ++i) {
    out.push_back(w[i].windows(in[i + 2].size));
    reach.push_back(w[i].effective_kernel());
    fits = fits && out.back().size > 0;
  }
  c.require(fits, "a window that reaches over " + extents_text(reach) +
                      " elements does not fit into the padded input " + in.str());
  return out;
}

void require_padding_below_window(const InferCtx& c, const WindowAxes& w) {
  const auto fits = [](const WindowAxis& a) {
    return std::max(a.before, a.after) < a.effective_kernel();
  };
  c.require(std::ranges::all_of(w, fits),
            "the padding must be smaller than the window, or some windows hold no element");
}

DType argmax_dtype(int64_t size) { return size <= 256 ? u8 : i32; }

}  // namespace fluid
