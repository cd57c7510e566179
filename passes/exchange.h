#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Records an Exchange of `bucket`, which comes after those that the graph has.
Values record_exchange(ir::Graph& graph, std::string_view op, const Values& bucket, const Loc& loc);
/// The same as number `number`: those from there on come one later.
Values insert_exchange(ir::Graph& graph, int64_t number, std::string_view op, const Values& bucket,
                       const Loc& loc);

/// Puts the ops in an order, as near to theirs as can be, in which exchanges come by their numbers.
void sort_by_exchanges(ir::Graph& graph);

/// Of each value, the number of the last exchange that it waits for; nothing where the graph has
/// none. -1 stands for all that forward has.
std::optional<std::vector<int64_t>> last_exchanges(const ir::Graph& graph, const Values& values);

/// Bytes that an exchange hands to the others.
int64_t exchanged_bytes(const ir::Op& exchange);

/// The exchanges of the graph, in the order in which every process comes to them.
std::vector<ir::Op*> exchanges(const ir::Graph& graph);

}  // namespace fluid
