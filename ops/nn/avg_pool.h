#pragma once

#include "ops/nn/pool.h"

namespace fluid {

/// Returns the definitions of the attributes of average pooling, followed by `more`.
std::vector<AttrDef> avg_pool_attrs(int dims, std::vector<AttrDef> more = {});

/// Returns the divisor of average pooling of `input` for the window at `window_index` (one index
/// per axis). This is attribute `divisor_override` if set, else the number of taps of the window.
/// If attribute `count_include_pad` is false, taps in the padding are not counted.
Expr avg_pool_divisor(const LowerCtx& c, const Type& input, const std::vector<Expr>& window_index);

}  // namespace fluid
