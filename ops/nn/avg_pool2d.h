#pragma once

#include "ops/nn/window.h"

namespace fluid {

/// Divisor of the sum over window (y, x) in average pooling of `input`: the number of taps. When
/// attribute `count_include_pad` is false, counts only taps inside the input.
Expr avg_pool2d_divisor(const LowerCtx& c, const Type& input, const Expr& y, const Expr& x);

}  // namespace fluid
