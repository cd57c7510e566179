#pragma once

#include "ir/graph.h"

namespace fluid {

/// Sets the penalties in the loss of the recipe `train`: l1 sum(|p|) + l2 sum(p^2) for each
/// parameter that the recipe trains, by the parameter's attributes l1 and l2. Replaces existing
/// penalties.
void set_penalties(ir::Op& train);

}  // namespace fluid
