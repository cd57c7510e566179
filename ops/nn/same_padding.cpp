#include "ops/nn/same_padding.h"

#include <algorithm>

namespace fluid {

Ints same_padding(Value x, const SameWindow& window, const Loc& loc) {
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
    require(n >= 1, std::string(name) + " must be positive");
    return n;
  };
  Ints before, after;
  for (size_t d = 0; d < dims; ++d) {
    const int64_t extent = shape[d + 2].size, stride = entry("stride", window.stride, d);
    const int64_t reach =
        entry("dilation", window.dilation, d) * (entry("kernel", window.kernel, d) - 1) + 1;
    const int64_t last = (extent + stride - 1) / stride - 1;
    const int64_t padding = std::max(last * stride + reach - extent, int64_t{0});
    before.push_back(window.same == Same::lower ? padding - padding / 2 : padding / 2);
    after.push_back(padding - before.back());
  }
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

}  // namespace fluid
