#pragma once

#include <vector>

#include "ops/op_def.h"

namespace fluid {

/// Upper bound of kernel size, stride, dilation and padding. The bound prevents integer overflow in
/// index arithmetic.
inline constexpr int64_t kMaxWindow = 1 << 15;

/// A sliding window of a convolution or pooling along one axis. Tap t of window o reads element o *
/// stride + t * dilation - before.
struct WindowAxis {
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t before = 0, after = 0;  ///< padding before the first and after the last element

  int64_t effective_kernel() const { return dilation * (kernel - 1) + 1; }
  /// Number of windows along an axis of `in` elements plus padding; 0 if the axis is shorter than a
  /// window.
  int64_t windows(int64_t in) const;
  /// Returns the index of the element that tap `tap` of window `window` reads. The index may lie in
  /// the padding.
  Expr element(const Expr& window, const Expr& tap) const;

  /// Returns the number of taps of window `window` that lie inside the `in` elements. Requires
  /// dilation 1.
  Expr taps_inside(const Expr& window, int64_t in) const;

  /// A window that may contain a given element. Each element has max_covering_windows() candidates.
  struct CoveringWindow {
    Expr window;  ///< index of the window; may be out of range
    Expr tap;     ///< tap that reads the element; in [0, kernel) if `valid`
    Expr valid;   ///< whether the window contains the element; null: always
  };
  int64_t max_covering_windows() const;
  CoveringWindow covering_window(const Expr& element, const Expr& candidate) const;
};

struct Window2d {
  WindowAxis y, x;
};

/// Builds the window of a pooling or convolution from attributes `stride`, `padding` (1, 2 or 4
/// values: top, left, bottom, right) and, if present, `dilation`. An empty `stride` means the
/// kernel size.
Window2d window_of(const Attrs& attrs, int64_t kernel_y, int64_t kernel_x);
/// Like the function above, with the kernel size from attribute `kernel`.
Window2d window_of(const Attrs& attrs);

/// Windows of adaptive pooling along one axis, as in PyTorch: `out` windows of nearly equal size
/// cover `in` elements. Window i is [floor(i * in / out), ceil((i + 1) * in / out)). The inverse
/// map has the same form: with `in` and `out` swapped, "window" e is the range of windows that
/// contain element e.
struct AdaptiveAxis {
  int64_t in = 1, out = 1;

  bool is_uniform() const { return in % out == 0; }
  int64_t max_window_size() const;  ///< size of the largest window
  Expr begin(const Expr& window) const;
  Expr end(const Expr& window) const;
  /// Returns the condition that element begin(window) + i lies in the window. Null when the
  /// condition holds for all i < max_window_size().
  Expr contains(const Expr& window, const Expr& i) const;
};

struct Adaptive2d {
  AdaptiveAxis y, x;
};
/// Returns the windows of an adaptive pooling from shape `input` to shape `output`, both [N, C, H,
/// W].
Adaptive2d adaptive_windows(const Shape& input, const Shape& output);
/// Returns the element of operand 0 [N, C, H, W] at an offset in the window of the current result
/// element. The two reduction variables give the offset. Windows differ in size: outside of the
/// window, returns `otherwise`. Inside, applies `map` to the element if `map` is not null.
Expr adaptive_window_element(const LowerCtx& c, const Adaptive2d& w, double otherwise,
                             const std::function<Expr(const Expr&)>& map = nullptr);
/// Type inference of an adaptive pooling or resize of `input` [N, C, H, W]. Attribute `output` is
/// the spatial size of the result.
Type infer_adaptive(const InferCtx& c, const Type& input);
/// Type inference of the gradient of an adaptive pooling or resize. Returns the value of attribute
/// `input`, the type of the forward input. Throws UserError unless operand 0, the gradient of the
/// forward result, matches this type.
Type infer_adaptive_grad(const InferCtx& c);

/// Returns the logical and of two conditions. A null condition means true.
Expr and_conditions(const Expr& a, const Expr& b);
/// Returns `value` where `condition` holds, and constant `otherwise` elsewhere. A null condition
/// means true.
Expr select_if(const Expr& condition, const Expr& value, double otherwise);

/// Throws UserError unless `type` is a float tensor [N, C, H, W] whose C, H and W do not depend on
/// the batch size.
void require_nchw(const InferCtx& c, const Type& type);
/// Throws UserError unless the attributes of a window (kernel, stride, padding, dilation) have
/// valid lengths and values.
void require_window_attrs(const InferCtx& c);
/// Returns the result shape [N, channels, OH, OW] of a convolution or pooling with window `w` on an
/// input of shape `in` [N, C, H, W].
Shape window_output_shape(const InferCtx& c, const Shape& in, const Window2d& w, Dim channels);
/// Throws UserError when the padding is as large as the window, because some windows would then lie
/// entirely in the padding.
void require_padding_below_window(const InferCtx& c, const Window2d& w);
/// Returns the integer dtype that stores argmax indices in a window of `size` elements.
DType argmax_dtype(int64_t size);

}  // namespace fluid
