#pragma once

#include "ops/nn/window.h"

namespace fluid {

/// Returns the divisor of the sum over window (y, x) in an average pooling of `input`: the number
/// of taps of the window. If attribute `count_include_pad` is false, only taps inside the input
/// count.
Expr avg_pool2d_divisor(const LowerCtx& c, const Type& input, const Expr& y, const Expr& x);

}  // namespace fluid
