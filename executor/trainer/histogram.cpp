#include "executor/trainer/histogram.h"

#include <algorithm>
#include <cmath>

namespace fluid {

std::optional<Histogram> histogram_of(const Tensor& values, int bins) {
  const Tensor wide = values.cast(f64);
  const auto elements = wide.as<double>();
  Histogram h{.min = INFINITY, .max = -INFINITY};
  for (const double x : elements) {
    if (!std::isfinite(x)) continue;
    h.min = std::min(h.min, x);
    h.max = std::max(h.max, x);
    h.num += 1;
    h.sum += x;
    h.sum_squares += x * x;
  }
  if (h.num == 0) return std::nullopt;
  if (h.min == h.max) bins = 1;
  const double width = (h.max - h.min) / bins;
  for (int i = 1; i < bins; ++i) h.right_edges.push_back(h.min + i * width);
  h.right_edges.push_back(h.max);
  h.counts.resize(static_cast<size_t>(bins));
  const auto last = h.right_edges.end() - 1;
  for (const double x : elements) {
    if (!std::isfinite(x)) continue;
    const auto bin = std::upper_bound(h.right_edges.begin(), last, x);
    h.counts[static_cast<size_t>(bin - h.right_edges.begin())] += 1;
  }
  return h;
}

}  // namespace fluid
