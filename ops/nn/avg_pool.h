#pragma once

#include "ops/nn/pool.h"

namespace fluid {

/// Returns the definitions of the attributes of an average pooling, followed by `more`.
std::vector<AttrDef> avg_pool_attrs(int dims, std::vector<AttrDef> more = {});

/// Returns the divisor of the sum over window `at` (one index per axis) in an average pooling of
/// `input`: attribute `divisor_override`, or the number of taps of the window. If attribute
/// `count_include_pad` is false, only taps inside the input count.
Expr avg_pool_divisor(const LowerCtx& c, const Type& input, const std::vector<Expr>& at);

}  // namespace fluid
