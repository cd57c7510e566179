#pragma once

#include <string_view>

#include "ir/graph.h"

namespace fluid {

// The state of dynamic loss scaling. It moves on in skipped steps too.
inline constexpr std::string_view kLossScale = "loss_scale";  ///< f32[]
inline constexpr std::string_view kGoodSteps =
    "loss_scale.good_steps";  ///< i64[]: since it changed
inline constexpr std::string_view kSkippedSteps = "loss_scale.skipped";  ///< i64[]: in all

/// The state of that name; f32[] or i64[].
Value loss_scale_state(ir::Graph& graph, std::string_view name, DType dtype, double initial,
                       const Loc& loc);

}  // namespace fluid
