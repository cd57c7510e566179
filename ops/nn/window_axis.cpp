#include <algorithm>

#include "ops/nn/window.h"

namespace fluid {

int64_t WindowAxis::windows(int64_t extent) const {
  const int64_t room = extent + before + after + excess - effective_kernel();
  return room < 0 ? 0 : room / stride + 1;
}

void WindowAxis::apply_ceil_mode(int64_t extent) {
  const int64_t end = extent + before + after;
  const int64_t room = end - effective_kernel() + stride - 1;
  if (room < 0) return;
  int64_t last = room / stride;
  // Drops the last window if it begins in the trailing padding, because it would contain no
  // element.
  if (last * stride >= extent + before) --last;
  excess = std::max(last * stride + effective_kernel() - end, int64_t{0});
}

Expr WindowAxis::element(const Expr& window, const Expr& tap) const {
  return window * static_cast<double>(stride) + tap * static_cast<double>(dilation) -
         static_cast<double>(before);
}

Expr WindowAxis::taps_between(const Expr& window, int64_t low, int64_t high) const {
  const Expr begin = element(window, Expr::index(0));
  if (dilation == 1) {
    return scalar::min(begin + static_cast<double>(kernel), Expr::index(high)) -
           scalar::max(begin, Expr::index(low));
  }
  // Tap t reads element begin + t * dilation. A window may have no tap inside [low, high).
  const Expr step = Expr::index(dilation);
  const Expr first = -scalar::floordiv(begin - Expr::index(low), step);
  const Expr stop = scalar::floordiv(Expr::index(high - 1) - begin, step) + Expr::index(1);
  const Expr count = scalar::min(stop, Expr::index(kernel)) - scalar::max(first, Expr::index(0));
  return scalar::max(count, Expr::index(1));
}

Expr WindowAxis::taps_inside(const Expr& window, int64_t extent) const {
  return taps_between(window, 0, extent);
}

Expr WindowAxis::taps_inside_padded_input(const Expr& window, int64_t extent) const {
  if (excess == 0) return Expr::index(kernel);
  return taps_between(window, -before, extent + after);
}

int64_t WindowAxis::max_covering_windows() const {
  return dilation == 1 ? (kernel + stride - 1) / stride : kernel;
}

WindowAxis::CoveringWindow WindowAxis::covering_window(const Expr& element,
                                                       const Expr& candidate) const {
  const Expr position = element + static_cast<double>(before);
  const Expr step = Expr::index(stride);
  if (dilation == 1) {
    const Expr window = scalar::floordiv(position, step) - candidate;
    const Expr tap = scalar::mod(position, step) + candidate * static_cast<double>(stride);
    const bool exact = max_covering_windows() * stride == kernel;
    return {window, tap, exact ? Expr() : scalar::compare(ScalarOp::lt, tap, Expr::index(kernel))};
  }
  const Expr first = position - candidate * static_cast<double>(dilation);
  const Expr valid = stride == 1
                         ? Expr()
                         : scalar::compare(ScalarOp::eq, scalar::mod(first, step), Expr::index(0));
  return {scalar::floordiv(first, step), candidate, valid};
}

}  // namespace fluid
