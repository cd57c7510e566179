#pragma once

#include <vector>

#include "ops/op_def.h"

namespace fluid {

/// The largest kernel size, stride, dilation and padding: keeps index arithmetic far from overflow.
inline constexpr int64_t kMaxWindow = 1 << 15;

/// How a window moves along one axis: tap t of window o lies at o * stride + t * dilation - before.
struct WindowAxis {
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t before = 0, after = 0;  ///< padding on either side

  int64_t reach() const { return dilation * (kernel - 1) + 1; }
  /// How many windows fit into `in` elements; may be 0 or negative.
  int64_t windows(int64_t in) const;
  /// The element under `tap` of `window`; may lie in the padding.
  Expr element(const Expr& window, const Expr& tap) const;

  /// How many taps of `window` lie inside `in` elements; for a dilation of 1.
  Expr taps_inside(const Expr& window, int64_t in) const;

  /// The windows that cover an element, as at most `covers()` candidates.
  struct Cover {
    Expr window;  ///< may be out of range
    Expr tap;     ///< in [0, kernel) where `valid`
    Expr valid;   ///< null: for every candidate
  };
  int64_t covers() const;
  Cover cover(const Expr& element, const Expr& candidate) const;
};

struct Window2d {
  WindowAxis y, x;
};

/// The window described by attributes `stride`, `padding` (one, two, or top, left, bottom, right)
/// and, where there is one, `dilation`. A stride of no elements is the kernel's size.
Window2d window_of(const Attrs& attrs, int64_t kernel_y, int64_t kernel_x);
/// As above, with the kernel's size from attribute `kernel`.
Window2d window_of(const Attrs& attrs);

/// Windows of nearly equal size that cover `in` elements with `out` windows, as PyTorch's adaptive
/// pooling lays them: window i is [floor(i * in / out), ceil((i + 1) * in / out)).
/// The windows that cover element e are {out, in}'s window e.
struct AdaptiveAxis {
  int64_t in = 1, out = 1;

  bool uniform() const { return in % out == 0; }
  int64_t widest() const;  ///< elements of the largest window
  Expr begin(const Expr& window) const;
  Expr end(const Expr& window) const;
  /// Whether element begin(window) + i lies in it; null when it does for all i < widest().
  Expr inside(const Expr& window, const Expr& i) const;
};

struct Adaptive2d {
  AdaptiveAxis y, x;
};
/// The windows of an adaptive pooling from `input` to `output`, both [N, C, H, W].
Adaptive2d adaptive_of(const Shape& input, const Shape& output);
/// The result's type for an input [N, C, H, W] and attribute `output`, of a pooling or resizing.
Type adaptive_type(const InferCtx& c, const Type& input);
/// Attribute `input` of the gradient of such an op, to which operand 0 must fit.
Type adaptive_input(const InferCtx& c);

/// null && b is b: conditions that hold everywhere are null.
Expr both(const Expr& a, const Expr& b);
/// `value` where `condition` holds, else `otherwise`.
Expr guard(const Expr& condition, const Expr& value, double otherwise);

/// Requires a float type [N, C, H, W] of fixed C, H and W.
void require_images(const InferCtx& c, const Type& type);
/// Fails unless the window's attributes make sense: sizes, signs, number of elements.
void require_window(const InferCtx& c);
/// The type of a window op's result for an input [N, C, H, W]: `channels` channels.
Shape window_shape(const InferCtx& c, const Shape& in, const Window2d& w, Dim channels);
/// Fails where the padding is as large as the window: some windows would hold no element.
void require_padding_below_window(const InferCtx& c, const Window2d& w);
/// The integer type of positions in a window of `size` elements.
DType position_dtype(int64_t size);

}  // namespace fluid
