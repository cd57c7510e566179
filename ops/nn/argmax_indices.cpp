#include "ops/nn/argmax_indices.h"

#include "ops/operators.h"

namespace fluid {

Value scaled_arange(Value like, int64_t count, double scale, double offset) {
  return arange(*like.op()->graph(),
                {.type = Type{f64, {count}, {}}, .start = offset, .step = scale});
}

/// Computes in f64, because div does not take integers. f64 represents every index exactly.
Value gather_at_argmax(Value x, Value argmax_index, const std::vector<ArgmaxAxis>& axes) {
  Value rest = cast(argmax_index, f64), element, inside;
  double stride = 1;
  int64_t inputs = 1, windows = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    const ArgmaxAxis& axis = axes[i];
    const int64_t extent = x.shape()[i + 2].size, count = argmax_index.shape()[i + 2].size;
    const Value outer = floor(rest / static_cast<double>(axis.taps));
    const Value tap = rest - outer * static_cast<double>(axis.taps);
    rest = outer;
    Shape along(axes.size() - i, 1);
    along[0] = count;
    Value at = reshape(axis.begin, along) + tap * static_cast<double>(axis.dilation);
    if (axis.padded) {
      const Value zero = scalar_like(at, 0), end = scalar_like(at, static_cast<double>(extent));
      at = where(less(at, zero), mod(at, scalar_like(at, static_cast<double>(axis.dilation))), at);
      const Value fits = less(at, end);
      inside = inside ? logical_and(inside, fits) : fits;
      at = minimum(at, end - 1);
    }
    element = element ? element + at * stride : at;
    stride *= static_cast<double>(extent);
    inputs *= extent;
    windows *= count;
  }
  const Dim n = x.shape()[0], channels = x.shape()[1];
  const Value index = reshape(cast(element, i64), Shape{n, channels, windows});
  const Value taken =
      reshape(take_along_axis(reshape(x, Shape{n, channels, inputs}), index, {.axis = 2}),
              argmax_index.shape());
  return inside ? where(inside, taken, scalar_like(taken, 0)) : taken;
}

}  // namespace fluid
