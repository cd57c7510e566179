#include "ops/nn/pool.h"

namespace fluid {

std::vector<AttrDef> pool_attrs(int dims, std::vector<AttrDef> more) {
  const std::string each = "one " + one_per_dimension_text(dims);
  std::vector<AttrDef> attrs = {
      {"kernel", std::vector<int64_t>{}, "window size: " + each, true},
      {"stride", std::vector<int64_t>{}, "stride of the window: " + each + "; empty: the kernel"},
      {"padding", std::vector<int64_t>{0}, "padding: " + padding_lengths_text(dims)},
      {"dilation", std::vector<int64_t>{1}, "spacing of the window's taps: " + each},
      {"ceil_mode", false,
       "whether the number of windows is rounded up; the last window then extends beyond the "
       "padding"}};
  attrs.insert(attrs.end(), more.begin(), more.end());
  return attrs;
}

Type pool_type(const InferCtx& c, const Type& input, int dims) {
  require_spatial_input(c, input, dims);
  require_window_attrs(c, dims);
  const WindowAxes window = pool_windows(c.attrs(), input.shape);
  const Shape y = window_output_shape(c, input.shape, window, input.shape[1]);
  require_padding_below_window(c, window);
  return {input.dtype, y, {}};
}

Type pool_grad_type(const InferCtx& c, int dims) {
  const Type& input = c.attr<Type>("input");
  const Type y = pool_type(c, input, dims);
  c.require(c.in(0) == y, "expects a gradient " + y.str() + ", got " + c.in(0).str());
  return input;
}

}  // namespace fluid
