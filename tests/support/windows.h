#pragma once

// Windows over images by plain loops, for references of convolutions and pools.

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/attr.h"

namespace fluid::testing {

using Extents = std::vector<int64_t>;

/// Position of [n, c, y, x] in memory of `shape`.
inline int64_t offset4(const Extents& shape, int64_t n, int64_t c, int64_t y, int64_t x) {
  return ((n * shape[1] + c) * shape[2] + y) * shape[3] + x;
}

/// Height and width of a window's kernel, step and distance of taps; padding top, left, bottom,
/// right.
struct Windows {
  Extents kernel, stride, dilation, padding;

  int64_t count(size_t axis, int64_t extent) const {
    const int64_t reach = dilation[axis] * (kernel[axis] - 1) + 1;
    return (extent + padding[axis] + padding[axis + 2] - reach) / stride[axis] + 1;
  }
};

/// As the attributes of a window op say; `kernel` where the op has no such attribute.
inline Windows windows_of(const Attrs& attrs, Extents kernel = {}) {
  const auto pair = [&](const char* name, const Extents& fallback) {
    Extents list = attrs.get_or<Extents>(name, fallback);
    if (list.empty()) list = fallback;
    if (list.size() == 1) list.push_back(list[0]);
    return list;
  };
  Windows w;
  w.kernel = pair("kernel", kernel);
  w.stride = pair("stride", attrs.has("kernel") ? w.kernel : Extents{1});
  w.dilation = pair("dilation", {1});
  w.padding = pair("padding", {0});
  if (w.padding.size() == 2) w.padding.insert(w.padding.end(), {w.padding[0], w.padding[1]});
  return w;
}

/// One element under one window; it may lie in the padding.
struct Tap {
  int64_t window_y, window_x, tap_y, tap_x, y, x;
  bool inside;
};

/// All taps of all windows over an image, window by window.
inline void for_each_tap(const Windows& w, int64_t height, int64_t width,
                         const std::function<void(const Tap&)>& visit) {
  for (int64_t oy = 0; oy < w.count(0, height); ++oy) {
    for (int64_t ox = 0; ox < w.count(1, width); ++ox) {
      for (int64_t ky = 0; ky < w.kernel[0]; ++ky) {
        for (int64_t kx = 0; kx < w.kernel[1]; ++kx) {
          const int64_t y = oy * w.stride[0] + ky * w.dilation[0] - w.padding[0];
          const int64_t x = ox * w.stride[1] + kx * w.dilation[1] - w.padding[1];
          visit({oy, ox, ky, kx, y, x, y >= 0 && y < height && x >= 0 && x < width});
        }
      }
    }
  }
}

}  // namespace fluid::testing
