#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Records an Exchange of `bucket`, which comes after those that the graph has.
Values record_exchange(ir::Graph& graph, std::string_view op, const Values& bucket, const Loc& loc);
/// The same as number `number`: those from there on come one later.
Values insert_exchange(ir::Graph& graph, int64_t number, std::string_view op, const Values& bucket,
                       const Loc& loc);

/// Marks the exchange before which processes tell each other whether they refused data.
void set_error_sync(ir::Op& exchange);
/// How many exchanges come before they do; nothing where they do not.
std::optional<size_t> exchanges_before_refusals(const ir::Graph& graph);

/// Ops of which the second waits for the first without reading it: exchanges have one order on all
/// processes, and that before which they tell of refusals comes after all maps and reductions that
/// may refuse data.
using AwaitedOp = std::pair<const ir::Op*, const ir::Op*>;
std::vector<AwaitedOp> awaited_pairs(const ir::Graph& graph);
/// Puts the ops in an order, as near to theirs as can be, in which those wait for each other.
void sort_by_exchanges(ir::Graph& graph);

/// Of each value, the number of the last exchange that it waits for; nothing where the graph has
/// none. -1 stands for all that forward has.
std::optional<std::vector<int64_t>> last_exchanges(const ir::Graph& graph, const Values& values);

/// Bytes that an exchange hands to the others.
int64_t exchanged_bytes(const ir::Op& exchange);

/// The exchanges of the graph, in the order in which every process comes to them.
std::vector<ir::Op*> exchanges(const ir::Graph& graph);

}  // namespace fluid
