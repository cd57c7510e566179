#pragma once

#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Records an Exchange of `bucket`, which comes after those that the graph has.
Values record_exchange(ir::Graph& graph, std::string_view op, const Values& bucket, const Loc& loc);

/// Bytes that an exchange hands to the others.
int64_t exchanged_bytes(const ir::Op& exchange);

/// The exchanges of the graph, in the order in which every process comes to them.
std::vector<ir::Op*> exchanges(const ir::Graph& graph);

}  // namespace fluid
