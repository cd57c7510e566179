#include <algorithm>

#include "ops/nn/window.h"

namespace fluid {

int64_t AdaptiveAxis::max_window_size() const {
  int64_t widest = 0;
  for (int64_t i = 0; i < out; ++i) {
    widest = std::max(widest, ((i + 1) * in + out - 1) / out - i * in / out);
  }
  return widest;
}

Expr AdaptiveAxis::begin(const Expr& window) const {
  return scalar::floordiv(window * static_cast<double>(in), Expr::index(out));
}

Expr AdaptiveAxis::end(const Expr& window) const {
  return scalar::floordiv(window * static_cast<double>(in) + static_cast<double>(in + out - 1),
                          Expr::index(out));
}

Expr AdaptiveAxis::contains(const Expr& window, const Expr& i) const {
  if (is_uniform()) return {};
  return scalar::compare(ScalarOp::lt, begin(window) + i, end(window));
}

Adaptive2d adaptive_windows(const Shape& input, const Shape& output) {
  return {{input[2].size, output[2].size}, {input[3].size, output[3].size}};
}

Expr adaptive_window_element(const LowerCtx& c, const Adaptive2d& w, double fallback,
                             const std::function<Expr(const Expr&)>& map) {
  const Expr oy = c.out_var(2), ox = c.out_var(3), ky = c.reduce_var(0), kx = c.reduce_var(1);
  const Expr inside = and_conditions(w.y.contains(oy, ky), w.x.contains(ox, kx));
  const std::vector<Expr> at = {c.out_var(0), c.out_var(1), w.y.begin(oy) + ky, w.x.begin(ox) + kx};
  const Expr x = inside ? c.read_or(0, at, fallback) : c.read(0, at);
  return select_if(inside, map ? map(x) : x, fallback);
}

}  // namespace fluid
