#pragma once

// Windows over images of any number of spatial dimensions by plain loops, for references of
// convolutions and poolings.

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/attr.h"

namespace fluid::testing {

using Extents = std::vector<int64_t>;

/// Spatial extents of [N, C, ...].
inline Extents image_of(const Extents& shape) { return {shape.begin() + 2, shape.end()}; }

/// Sizes of a window along each axis. Padding: all before, then all after.
struct Windows {
  Extents kernel, stride, dilation, padding;
  bool ceil_mode = false;

  int64_t reach(size_t axis) const { return dilation[axis] * (kernel[axis] - 1) + 1; }
  int64_t after(size_t axis) const { return padding[axis + kernel.size()]; }
  int64_t count(size_t axis, int64_t extent) const {
    const int64_t excess = ceil_mode ? stride[axis] - 1 : 0;
    const auto exists = [&](int64_t begin) {
      if (ceil_mode && begin >= padding[axis] + extent) return false;
      return begin + reach(axis) <= padding[axis] + extent + after(axis) + excess;
    };
    int64_t n = 0;
    while (exists(n * stride[axis])) ++n;
    return n;
  }
  Extents counts(const Extents& image) const {
    Extents all;
    for (size_t d = 0; d < image.size(); ++d) all.push_back(count(d, image[d]));
    return all;
  }
};

/// As the attributes of a window op of `dims` spatial dimensions say; `kernel` where the op has no
/// such attribute.
inline Windows windows_of(const Attrs& attrs, size_t dims, const Extents& kernel = {}) {
  const auto list = [&](const char* name, const Extents& fallback) {
    Extents all = attrs.get_or<Extents>(name, fallback);
    if (all.empty()) all = fallback;
    if (all.size() == 1) all.resize(dims, all[0]);
    return all;
  };
  Windows w;
  w.kernel = list("kernel", kernel);
  w.stride = list("stride", attrs.has("kernel") ? w.kernel : Extents{1});
  w.dilation = list("dilation", {1});
  w.padding = attrs.get_or<Extents>("padding", {0});
  if (w.padding.size() == 1) w.padding.resize(dims, w.padding[0]);
  for (size_t d = 0; w.padding.size() < 2 * dims; ++d) w.padding.push_back(w.padding[d]);
  w.ceil_mode = attrs.get_or("ceil_mode", false);
  return w;
}

/// One tap of one window. Indices are row-major: of the window, of the tap in the window, and of
/// the element in the image.
struct Tap {
  int64_t window = 0, tap = 0, element = 0;
  bool inside = true;  ///< in the image
  bool padded = true;  ///< in the image or its padding
};

/// Calls visit(index) for each index below `extents`, in row-major order.
inline void for_each_index(const Extents& extents,
                           const std::function<void(const Extents&)>& visit) {
  int64_t n = 1;
  for (const int64_t extent : extents) n *= extent;
  Extents index(extents.size());
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i;
    for (size_t d = extents.size(); d-- > 0; rest /= extents[d]) index[d] = rest % extents[d];
    visit(index);
  }
}

/// All taps of all windows over an image, window by window.
inline void for_each_tap(const Windows& w, const Extents& image,
                         const std::function<void(const Tap&)>& visit) {
  const Extents counts = w.counts(image);
  for_each_index(counts, [&](const Extents& window) {
    for_each_index(w.kernel, [&](const Extents& tap) {
      Tap t;
      for (size_t d = 0; d < image.size(); ++d) {
        const int64_t at = window[d] * w.stride[d] + tap[d] * w.dilation[d] - w.padding[d];
        t.window = t.window * counts[d] + window[d];
        t.tap = t.tap * w.kernel[d] + tap[d];
        t.element = t.element * image[d] + at;
        t.inside = t.inside && at >= 0 && at < image[d];
        t.padded = t.padded && at < image[d] + w.after(d);
      }
      visit(t);
    });
  });
}

}  // namespace fluid::testing
