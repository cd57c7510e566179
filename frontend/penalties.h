#pragma once

#include <set>

#include "ir/graph.h"

namespace fluid {

/// Adds penalties to the loss of the recipe `train`: l1 sum(|p|) + l2 sum(p^2) for each parameter p
/// that the recipe trains. l1 and l2 are attributes of p. Replaces the penalties added by earlier
/// calls.
void set_penalties(ir::Op& train);

/// Returns the ops that compute these penalties, and the ops that add them to the loss of `train`.
std::set<const ir::Op*> penalty_ops(const ir::Op& train);

}  // namespace fluid
