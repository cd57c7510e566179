#pragma once

#include "ops/nn/window.h"

namespace fluid {

/// Number of elements of adaptive window (y, x), in compute_dtype(dtype).
Expr adaptive_avg_pool2d_divisor(const Adaptive2d& w, const Expr& y, const Expr& x, DType dtype);

}  // namespace fluid
