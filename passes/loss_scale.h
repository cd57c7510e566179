#pragma once

#include <string_view>

#include "ir/graph.h"

namespace fluid {

// Names of the states of dynamic loss scaling. A skipped step updates these states too.

/// Name of the state, f32[], that holds the loss scale.
inline constexpr std::string_view kLossScale = "loss_scale";
/// Name of the state, i64[], that counts the steps with finite gradients since the loss scale last
/// changed.
inline constexpr std::string_view kGoodSteps = "loss_scale.good_steps";
/// Name of the state, i64[], that counts the skipped steps.
inline constexpr std::string_view kSkippedSteps = "loss_scale.skipped";

/// Returns the scalar state `name` of the graph. Declares the state, with initial value `initial`,
/// if it does not exist.
Value loss_scale_state(ir::Graph& graph, std::string_view name, DType dtype, double initial,
                       const Loc& loc);

}  // namespace fluid
