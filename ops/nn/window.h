#pragma once

#include <vector>

#include "ops/op_def.h"

namespace fluid {

/// Upper bound of kernel size, stride, dilation and padding. It keeps index arithmetic far from
/// overflow.
inline constexpr int64_t kMaxWindow = 1 << 15;

/// A sliding window along one axis. Tap t of window o is at o * stride + t * dilation - before.
struct WindowAxis {
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t before = 0, after = 0;  ///< padding at the start and at the end

  int64_t reach() const { return dilation * (kernel - 1) + 1; }
  /// Number of windows that fit into `in` elements; may be 0 or negative.
  int64_t windows(int64_t in) const;
  /// Index of the element under `tap` of `window`. May lie in the padding.
  Expr element(const Expr& window, const Expr& tap) const;

  /// Number of taps of `window` inside `in` elements. Requires dilation 1.
  Expr taps_inside(const Expr& window, int64_t in) const;

  /// A candidate for a window that covers an element. An element has at most `covers()` candidates.
  struct Cover {
    Expr window;  ///< may be out of range
    Expr tap;     ///< in [0, kernel) where `valid`
    Expr valid;   ///< null: always true
  };
  int64_t covers() const;
  Cover cover(const Expr& element, const Expr& candidate) const;
};

struct Window2d {
  WindowAxis y, x;
};

/// Builds the window from attributes `stride`, `padding` (1, 2 or 4 values: top, left, bottom,
/// right) and, if present, `dilation`. An empty stride means the kernel size.
Window2d window_of(const Attrs& attrs, int64_t kernel_y, int64_t kernel_x);
/// Builds the window with the kernel size from attribute `kernel`.
Window2d window_of(const Attrs& attrs);

/// Windows of PyTorch's adaptive pooling: `out` windows of nearly equal size cover `in` elements.
/// Window i is [floor(i * in / out), ceil((i + 1) * in / out)). Window e of AdaptiveAxis{out, in}
/// is the range of windows that cover element e.
struct AdaptiveAxis {
  int64_t in = 1, out = 1;

  bool uniform() const { return in % out == 0; }
  int64_t widest() const;  ///< size of the largest window
  Expr begin(const Expr& window) const;
  Expr end(const Expr& window) const;
  /// Whether element begin(window) + i lies in the window. Null when it does for all i < widest().
  Expr inside(const Expr& window, const Expr& i) const;
};

struct Adaptive2d {
  AdaptiveAxis y, x;
};
/// The windows of an adaptive pooling from `input` to `output`, both [N, C, H, W].
Adaptive2d adaptive_of(const Shape& input, const Shape& output);
/// Result type of an adaptive pooling or resize of `input` [N, C, H, W] to the size in attribute
/// `output`.
Type adaptive_type(const InferCtx& c, const Type& input);
/// Attribute `input` of the gradient of an adaptive pooling or resize. Fails unless operand 0, the
/// gradient, matches it.
Type adaptive_input(const InferCtx& c);

/// Logical and of two conditions; null means always true.
Expr both(const Expr& a, const Expr& b);
/// `value` if `condition` holds, else `otherwise`. A null condition means always true.
Expr guard(const Expr& condition, const Expr& value, double otherwise);

/// Fails unless `type` is float [N, C, H, W] with fixed C, H and W.
void require_images(const InferCtx& c, const Type& type);
/// Fails unless the window attributes have valid ranges and numbers of values.
void require_window(const InferCtx& c);
/// Result shape of a window op on an input [N, C, H, W], with `channels` channels.
Shape window_shape(const InferCtx& c, const Shape& in, const Window2d& w, Dim channels);
/// Fails when the padding is as large as the window: some windows would then hold no element.
void require_padding_below_window(const InferCtx& c, const Window2d& w);
/// Integer dtype of the argmax index in a window of `size` elements.
DType position_dtype(int64_t size);

}  // namespace fluid
