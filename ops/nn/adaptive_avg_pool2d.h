#pragma once

#include "ops/nn/window.h"

namespace fluid {

/// The number of elements of adaptive window (y, x), as a number of compute dtype.
Expr adaptive_avg_pool2d_divisor(const Adaptive2d& w, const Expr& y, const Expr& x, DType dtype);

}  // namespace fluid
