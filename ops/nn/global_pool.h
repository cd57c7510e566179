#pragma once

#include "ir/graph.h"

namespace fluid {

/// Poolings of x [N, C, ...] over all spatial dimensions, as GlobalAveragePool, GlobalMaxPool and
/// GlobalLpPool of ONNX. The result is [N, C, 1, ...]. Throw UserError unless x has a spatial
/// dimension.
Value global_avg_pool(Value x, const Loc& loc = Loc::here());
Value global_max_pool(Value x, const Loc& loc = Loc::here());
/// The norm (sum |x|^p)^(1 / p); p >= 1. x has 1 to 3 spatial dimensions.
Value global_lp_pool(Value x, double p = 2, const Loc& loc = Loc::here());

}  // namespace fluid
