#pragma once

#include <memory>
#include <string_view>

#include "ir/graph.h"

namespace fluid {

/// Whether `variable` is the name of a precomputed weight. A precomputed weight is a scratch state
/// of a predict program; its value is a function of parameters and states. The function is the same
/// in all programs with a state of this name.
bool is_precomputed_weight(std::string_view variable);

/// Removes the graph of the precomputed weights from a predict program that has been through
/// precompute_weights. Returns the graph as a program that stores the weights, or null if there is
/// no such graph. The caller must run the passes of startup_pipeline() on the returned program. The
/// program must run before the first predict step, and again after each change of a parameter or
/// state.
std::unique_ptr<ir::Program> extract_weight_program(ir::Program& predict);

}  // namespace fluid
