#pragma once

#include <memory>
#include <string_view>

#include "ir/graph.h"

namespace fluid {

/// Whether `variable` is the name of a precomputed weight: a scratch state of a predict program,
/// whose value is a function of parameters and states. Every program with the name computes the
/// same function.
bool is_precomputed_weight(std::string_view variable);

/// Removes the graph of the precomputed weights from a predict program that has been through
/// precompute_weights, and returns it as a program, or null if there is none. The program stores
/// the weights. It must run before the first predict step, and again after a parameter or state
/// changed. The caller must run the passes of startup_pipeline() on it.
std::unique_ptr<ir::Program> take_weight_program(ir::Program& predict);

}  // namespace fluid
