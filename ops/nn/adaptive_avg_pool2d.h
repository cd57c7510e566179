#pragma once

#include "ops/nn/window.h"

namespace fluid {

/// Returns the number of elements in window (y, x) of an adaptive pooling, in compute_dtype(dtype).
Expr adaptive_avg_pool2d_divisor(const Adaptive2d& w, const Expr& y, const Expr& x, DType dtype);

}  // namespace fluid
