#include "executor/cpu_libraries/direct_images.h"

#include <algorithm>

#include "passes/memory_plan.h"

namespace fluid {

DirectImages::DirectImages(const DirectProblem& problem)
    : problem_(problem), pads_(problem.y.needs_padding() || problem.x.needs_padding()) {
  height_ = pads_ ? problem.y.padded : problem.y.source;
  width_ = pads_ ? problem.x.padded : problem.x.source;
  if (!pads_) {
    low_y_ = problem.y.low;
    low_x_ = problem.x.low;
  }
  for (const DirectPhase& y : problem.y.phases) {
    for (const DirectPhase& x : problem.x.phases) phases_.push_back(phases_of(y, x));
  }
}

int64_t DirectImages::padded_bytes() const {
  return align_up(padded_rows() * width_ * problem_.source_channels() * int64_t{sizeof(float)});
}

DirectPhases DirectImages::phases_of(const DirectPhase& y, const DirectPhase& x) const {
  DirectPhases phases{y, x, problem_.images * y.count * x.count, {}, {}};
  for (const DirectTap& r : y.taps) {
    for (const DirectTap& s : x.taps) {
      phases.taps.push_back(r.tap * problem_.kernel_x + s.tap);
      phases.offsets.push_back((r.offset * width_ + s.offset) * problem_.source_channels());
    }
  }
  return phases;
}

void DirectImages::addresses(const DirectPhases& phases, int64_t begin, int64_t n,
                             const float* padded, const float** sources, float* result,
                             int64_t channel, float** results) const {
  const DirectPhase &row = phases.y, &column = phases.x;
  int64_t x = begin % column.count, y = begin / column.count % row.count,
          image = begin / column.count / row.count;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t source_y = row.base + y * row.base_step + low_y_;
    const int64_t source_x = column.base + x * column.base_step + low_x_;
    sources[i] =
        padded + ((image * height_ + source_y) * width_ + source_x) * problem_.source_channels();
    if (results != nullptr) {
      const int64_t pixel =
          (image * problem_.y.result + row.first + y * row.step) * problem_.x.result +
          column.first + x * column.step;
      results[i] = result + pixel * problem_.result_channels() + channel;
    }
    if (++x < column.count) continue;
    x = 0;
    if (++y < row.count) continue;
    y = 0;
    ++image;
  }
}

}  // namespace fluid
