#pragma once

#include "ir/graph.h"

namespace fluid {

/// Adds penalties to the loss of the recipe `train`: l1 sum(|p|) + l2 sum(p^2) for each parameter p
/// that the recipe trains. l1 and l2 are attributes of p. Replaces the penalties added by earlier
/// calls.
void set_penalties(ir::Op& train);

}  // namespace fluid
