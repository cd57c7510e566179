#pragma once

#include <vector>

#include "ops/op_def.h"

namespace fluid {

/// Upper bound of kernel size, stride, dilation and padding. The bound prevents integer overflow in
/// index arithmetic.
inline constexpr int64_t kMaxWindow = 1 << 15;

/// The windows of a convolution or pooling along one axis. Tap t of window o reads element o *
/// stride + t * dilation - before.
struct WindowAxis {
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t before = 0, after = 0;  ///< padding before the first and after the last element
  /// Number of elements by which the last window extends past the padding in ceil_mode.
  int64_t excess = 0;

  int64_t effective_kernel() const { return dilation * (kernel - 1) + 1; }
  /// Number of windows along an axis of `extent` elements plus padding; 0 if the padded axis is
  /// shorter than a window.
  int64_t windows(int64_t extent) const;
  /// Sets `excess` for PyTorch's ceil_mode on an axis of `extent` elements. The number of windows
  /// is then rounded up, but no window begins in the trailing padding.
  void apply_ceil_mode(int64_t extent);
  /// Returns the index of the element that tap `tap` of window `window` reads. The index may be in
  /// the padding.
  Expr element(const Expr& window, const Expr& tap) const;

  /// Returns the number of taps of window `window` outside of the padding, but at least 1. `extent`
  /// is the number of elements of the axis.
  Expr taps_inside(const Expr& window, int64_t extent) const;
  /// Returns the number of taps of window `window` that read elements or padding. In ceil_mode,
  /// taps past the trailing padding are not counted.
  Expr taps_inside_padded_input(const Expr& window, int64_t extent) const;

  /// One of the max_covering_windows() windows that may contain a given element.
  struct CoveringWindow {
    Expr window;  ///< index of the window; may be out of range
    Expr tap;     ///< tap that reads the element; in [0, kernel) if `valid`
    Expr valid;   ///< whether the window contains the element; null: always
  };
  int64_t max_covering_windows() const;
  CoveringWindow covering_window(const Expr& element, const Expr& candidate) const;

 private:
  Expr taps_between(const Expr& window, int64_t low, int64_t high) const;
};

/// The windows of an op with D spatial dimensions: one axis per dimension, outermost first.
using WindowAxes = std::vector<WindowAxis>;

/// Builds the window of a pooling or convolution from attributes `stride`, `padding` and, if
/// present, `dilation`. `padding` has 1, D or 2 D values; 2 D values are first the padding at the
/// beginning of all dimensions, then at the end. `kernel` has D values. If `stride` is empty, the
/// stride equals the kernel size.
WindowAxes window_axes(const Attrs& attrs, const std::vector<int64_t>& kernel);
/// Builds the windows of a pooling of `input` [N, C, ...] like window_axes(), with the kernel size
/// from attribute `kernel`. With attribute `ceil_mode`, rounds the number of windows up.
WindowAxes pool_windows(const Attrs& attrs, const Shape& input);

struct Window2d {
  WindowAxis y, x;
};
/// Like window_axes(), for two spatial dimensions.
Window2d window_of(const Attrs& attrs, int64_t kernel_y, int64_t kernel_x);

/// Number of taps of a window.
int64_t taps_of(const WindowAxes& window);
/// Upper bound of the number of windows that contain one element.
int64_t covering_windows_of(const WindowAxes& window);
/// Returns the index of an input element: one expression per dimension of [N, C, ...]. `channel` is
/// the index along C. The result element selects the window. Reduction variables `first`,
/// `first` + 1, ... select the tap, one variable per spatial dimension.
std::vector<Expr> window_element(const LowerCtx& c, const WindowAxes& window, const Expr& channel,
                                 size_t first = 0);
/// One of the covering_windows_of() windows that may contain the result element.
struct CoveringWindows {
  std::vector<Dim> extents;       ///< extents of the reduction variables
  std::vector<Expr> window, tap;  ///< one entry per axis
  Expr valid;                     ///< whether the window contains the element; null: always
};
/// Reduction variables `first`, `first` + 1, ... select the window, one variable per axis.
CoveringWindows covering_windows(const LowerCtx& c, const WindowAxes& window, size_t first = 0);

/// Windows of adaptive pooling along one axis, as in PyTorch: `out` windows over `in` elements.
/// Window i is [floor(i * in / out), ceil((i + 1) * in / out)). With `in` and `out` swapped,
/// [begin(e), end(e)) is the range of the windows that contain element e.
struct AdaptiveAxis {
  int64_t in = 1, out = 1;

  bool is_uniform() const { return in % out == 0; }
  int64_t max_window_size() const;  ///< size of the largest window
  Expr begin(const Expr& window) const;
  Expr end(const Expr& window) const;
  /// Returns the condition that element begin(window) + i is in the window. Null if the condition
  /// is true for all i < max_window_size().
  Expr contains(const Expr& window, const Expr& i) const;
};

struct Adaptive2d {
  AdaptiveAxis y, x;
};
/// Returns the windows of an adaptive pooling from shape `input` to shape `output`, both [N, C, H,
/// W].
Adaptive2d adaptive_windows(const Shape& input, const Shape& output);
/// Returns the element of operand 0 [N, C, H, W] at an offset in the window of the current result
/// element. The two reduction variables are the offset. Applies `map`, if not null, to the element.
/// Returns `fallback` for an offset outside of the window, because windows differ in size.
Expr adaptive_window_element(const LowerCtx& c, const Adaptive2d& w, double fallback,
                             const std::function<Expr(const Expr&)>& map = nullptr);
/// Type inference of an adaptive pooling or resize op with the given input [N, C, H, W]. Attribute
/// `output` is the spatial size of the result.
Type infer_adaptive_pool(const InferCtx& c, const Type& input);
/// Type inference of the gradient of an adaptive pooling or resize. Returns the type of the forward
/// input, which is attribute `input`. Throws UserError if this type does not match operand 0, the
/// gradient of the forward result.
Type infer_adaptive_pool_grad(const InferCtx& c);

/// Returns the logical and of two conditions. A null condition means true.
Expr and_conditions(const Expr& a, const Expr& b);
/// Returns `value` where `condition` is true, and the constant `fallback` elsewhere. A null
/// condition means true.
Expr select_if(const Expr& condition, const Expr& value, double fallback);

/// Returns "L", "H, W" or "D, H, W", the names of `dims` spatial dimensions, each with prefix
/// `prefix`.
std::string spatial_names(int dims, const std::string& prefix = "");
/// Returns text for error messages that describes the values of a list attribute for `dims` spatial
/// dimensions, such as "number, or one each for the height and the width". dims = 0 means an
/// unknown number of dimensions.
std::string one_per_dimension_text(int dims);
/// Returns text that says how many values attribute `padding` may have in window_axes().
std::string padding_lengths_text(int dims);

/// Throws UserError unless `type` is a float tensor [N, C, ...] with `dims` spatial dimensions.
/// Only N may depend on the batch size.
void require_spatial_input(const InferCtx& c, const Type& type, int dims);
/// Like require_spatial_input(), for two spatial dimensions.
void require_nchw(const InferCtx& c, const Type& type);
/// Throws UserError unless the attributes of a window (kernel, stride, padding, dilation) have
/// valid lengths and values.
void require_window_attrs(const InferCtx& c, int dims);
/// Returns the result shape [N, channels, ...] of a convolution or pooling with window `w` on an
/// input of shape `in` [N, C, ...].
Shape window_output_shape(const InferCtx& c, const Shape& in, const WindowAxes& w, Dim channels);
/// Throws UserError unless the padding is smaller than the window. With more padding, some windows
/// would contain no element.
void require_padding_below_window(const InferCtx& c, const WindowAxes& w);
/// Returns the integer dtype of argmax indices in a window of `size` elements.
DType argmax_dtype(int64_t size);

}  // namespace fluid
