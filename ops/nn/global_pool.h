#pragma once

#include "ir/graph.h"

namespace fluid {

/// These functions pool x [N, C, ...] over all spatial dimensions, like ONNX's GlobalAveragePool,
/// GlobalMaxPool and GlobalLpPool. The result is [N, C, 1, ...]. They throw UserError if x has no
/// spatial dimension.
Value global_avg_pool(Value x, const Loc& loc = Loc::here());
Value global_max_pool(Value x, const Loc& loc = Loc::here());
/// Computes the norm (sum |x|^p)^(1 / p). Requires p >= 1, and 1 to 3 spatial dimensions.
Value global_lp_pool(Value x, double p = 2, const Loc& loc = Loc::here());

}  // namespace fluid
