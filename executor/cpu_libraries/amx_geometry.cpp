#include "executor/cpu_libraries/amx_geometry.h"

#include <algorithm>

namespace fluid {

AmxPhase::AmxPhase(const DirectProblem& problem, const DirectPhase& y, const DirectPhase& x)
    : y_(y),
      x_(x),
      low_y_(problem.y.low),
      low_x_(problem.x.low),
      height_(problem.y.source),
      width_(problem.x.source),
      channels_(problem.source_channels()),
      result_height_(problem.y.result),
      result_width_(problem.x.result),
      pixels_(problem.images * y.count * x.count) {
  for (const DirectTap& r : y.taps) {
    for (const DirectTap& s : x.taps) {
      taps_.push_back({.tap = r.tap * problem.kernel_x + s.tap,
                       .y = r.offset,
                       .x = s.offset,
                       .distance = (r.offset * width_ + s.offset) * channels_});
    }
  }
  std::ranges::sort(taps_, {}, &AmxTap::distance);
  for (size_t i = 0; i < taps_.size(); ++i) {
    const bool is_adjacent =
        i > 0 && taps_[i].y == taps_[i - 1].y && taps_[i].x == taps_[i - 1].x + 1;
    if (is_adjacent) {
      ++tap_rows_.back().count;
    } else {
      tap_rows_.push_back({i, 1});
    }
  }
}

void AmxPhase::store_pixels(int64_t begin, int64_t n, AmxPixel* to) const {
  int64_t x = begin % x_.count, y = begin / x_.count % y_.count,
          image = begin / x_.count / y_.count;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t source_y = low_y_ + y_.base + y * y_.base_step;
    const int64_t source_x = low_x_ + x_.base + x * x_.base_step;
    to[i] = {.y = source_y,
             .x = source_x,
             .offset = ((image * height_ + source_y) * width_ + source_x) * channels_,
             .result = (image * result_height_ + y_.first + y * y_.step) * result_width_ +
                       x_.first + x * x_.step};
    if (++x < x_.count) continue;
    x = 0;
    if (++y < y_.count) continue;
    y = 0;
    ++image;
  }
}

std::vector<AmxPhase> amx_phases(const DirectProblem& problem) {
  std::vector<AmxPhase> phases;
  for (const DirectPhase& y : problem.y.phases) {
    for (const DirectPhase& x : problem.x.phases) phases.emplace_back(problem, y, x);
  }
  return phases;
}

}  // namespace fluid
