#pragma once

#include "ir/graph.h"

namespace fluid {

/// Adds the penalty l1 sum(|p|) + l2 sum(p^2) of each parameter p that the recipe `train` trains to
/// the loss of the recipe. l1 and l2 are attributes of the parameter. Replaces penalties added by
/// earlier calls.
void set_penalties(ir::Op& train);

}  // namespace fluid
