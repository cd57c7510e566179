#pragma once

#include <map>

#include "ir/graph.h"

namespace fluid {

/// The ops of `graph` whose results change only if a weight changes. Maps an op to true if its
/// result depends on a weight, and to false if its result depends only on constants.
///
/// A weight is a parameter, or a recorded state that no op of `graph` stores. An op that depends on
/// the batch size, has side effects or checks the values of its operands is not in the map.
std::map<const ir::Op*, bool> weight_ops(const ir::Graph& graph);

}  // namespace fluid
