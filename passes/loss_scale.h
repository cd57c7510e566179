#pragma once

#include <string_view>

#include "ir/graph.h"

namespace fluid {

// States of dynamic loss scaling. Skipped steps update them too.
inline constexpr std::string_view kLossScale = "loss_scale";  ///< f32[]
inline constexpr std::string_view kGoodSteps =
    "loss_scale.good_steps";  ///< i64[]: good steps since the last change
inline constexpr std::string_view kSkippedSteps = "loss_scale.skipped";  ///< i64[]: total

/// The state `name`, f32[] or i64[]. Declares the state if the graph lacks it.
Value loss_scale_state(ir::Graph& graph, std::string_view name, DType dtype, double initial,
                       const Loc& loc);

}  // namespace fluid
