#include "ops/nn/same_padding.h"

#include <algorithm>

namespace fluid {
namespace {

/// The window along one spatial dimension. `reach`: extent of the dilated kernel.
struct SameAxis {
  int64_t extent, stride, reach;
};

/// Returns the window along each spatial dimension of x. Throws the errors of same_padding().
std::vector<SameAxis> same_axes(Value x, const SameWindow& window, const Loc& loc) {
  if (!x) throw UserError(loc, "same_padding: the input is an empty value");
  const Shape& shape = x.shape();
  const auto require = [&](bool condition, const std::string& what) {
    if (!condition) throw UserError(loc, "same_padding: " + what);
  };
  require(shape.size() > 2 &&
              std::none_of(shape.begin() + 2, shape.end(), [](const Dim& d) { return d.batch; }),
          "the input is " + x.type().str() + ", not [N, C, ...] with fixed spatial extents");
  const size_t dims = shape.size() - 2;
  const auto entry = [&](const char* name, const Ints& list, size_t d) {
    require(list.size() == 1 || list.size() == dims, std::string(name) + " takes 1 or " +
                                                         std::to_string(dims) + " numbers, not " +
                                                         std::to_string(list.size()));
    const int64_t n = list.size() == 1 ? list[0] : list[d];
    require(n >= 1, std::string(name) + " must be positive, not " + std::to_string(n));
    return n;
  };
  std::vector<SameAxis> axes;
  for (size_t d = 0; d < dims; ++d) {
    const int64_t stride = entry("stride", window.stride, d);
    const int64_t reach =
        entry("dilation", window.dilation, d) * (entry("kernel", window.kernel, d) - 1) + 1;
    axes.push_back({shape[d + 2].size, stride, reach});
  }
  return axes;
}

/// Returns the padding at the beginning of all dimensions, then at the end of all dimensions.
Ints divided_padding(const Ints& totals, Same same) {
  Ints before, after;
  for (const int64_t total : totals) {
    before.push_back(same == Same::lower ? total - total / 2 : total / 2);
    after.push_back(total - before.back());
  }
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

}  // namespace

Ints same_padding(Value x, const SameWindow& window, const Loc& loc) {
  Ints totals;
  for (const SameAxis& axis : same_axes(x, window, loc)) {
    const int64_t last = (axis.extent + axis.stride - 1) / axis.stride - 1;
    totals.push_back(std::max(last * axis.stride + axis.reach - axis.extent, int64_t{0}));
  }
  return divided_padding(totals, window.same);
}

TransposedPadding same_transposed_padding(Value x, const SameWindow& window, const Loc& loc) {
  Ints totals;
  for (const SameAxis& axis : same_axes(x, window, loc)) totals.push_back(axis.reach - axis.stride);
  return divide_transposed_padding(totals, window.same);
}

TransposedPadding divide_transposed_padding(const Ints& totals, Same same) {
  Ints padding, output_padding;
  for (const int64_t total : totals) {
    padding.push_back(std::max(total, int64_t{0}));
    output_padding.push_back(padding.back() - total);
  }
  return {divided_padding(padding, same), output_padding};
}

}  // namespace fluid
