#pragma once

#include "ops/nn/window.h"

namespace fluid {

/// What the sum over window (y, x) of an average pooling of `input` is divided by: the window's
/// taps, or those inside the input when attribute `count_include_pad` is false.
Expr avg_pool2d_divisor(const LowerCtx& c, const Type& input, const Expr& y, const Expr& x);

}  // namespace fluid
