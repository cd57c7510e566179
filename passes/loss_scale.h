#pragma once

#include <string_view>

#include "ir/graph.h"

namespace fluid {

// Names of the states of dynamic loss scaling: the loss scale, the number of steps with finite
// gradients since the loss scale last changed, and the number of skipped steps. A skipped step
// updates these states too.
inline constexpr std::string_view kLossScale = "loss_scale";             ///< state, f32[]
inline constexpr std::string_view kGoodSteps = "loss_scale.good_steps";  ///< state, i64[]
inline constexpr std::string_view kSkippedSteps = "loss_scale.skipped";  ///< state, i64[]

/// Returns the scalar state `name` of the graph. Declares the state, with initial value `initial`,
/// if it does not exist.
Value loss_scale_state(ir::Graph& graph, std::string_view name, DType dtype, double initial,
                       const Loc& loc);

}  // namespace fluid
