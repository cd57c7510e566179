#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Records a collective on `bucket` that is ordered after all collectives of the graph.
Values record_collective(ir::Graph& graph, std::string_view op, const Values& bucket,
                         const Loc& loc);
/// Records a collective with order number `number`. Collectives numbered `number` or higher move up
/// by one.
Values insert_collective(ir::Graph& graph, int64_t number, std::string_view op,
                         const Values& bucket, const Loc& loc);

/// Marks the collective before which ranks exchange their error words.
void set_error_sync(ir::Op& exchange);
/// Number of collectives before the one that set_error_sync() marked; nullopt if there is none.
std::optional<size_t> collectives_before_error_sync(const ir::Graph& graph);

/// A pair of ops of which the second waits for the first without reading it. Collectives run in one
/// order on all ranks. The collective of set_error_sync() waits for all ops that may reject data.
using OrderEdge = std::pair<const ir::Op*, const ir::Op*>;
std::vector<OrderEdge> order_edges(const ir::Graph& graph);
/// Reorders the ops so that the ops of each awaited pair are in order. Stays as close to the
/// present order as possible.
void sort_by_collectives(ir::Graph& graph);

/// For each value, the number of the last collective of backward on which it depends; -1 if there
/// is none. Returns nullopt when the graph has no collective.
std::optional<std::vector<int64_t>> last_collectives(const ir::Graph& graph, const Values& values);

/// Bytes that the collective sends per process.
int64_t collective_bytes(const ir::Op& exchange);

/// The collectives of the graph, in their order of execution.
std::vector<ir::Op*> exchanges(const ir::Graph& graph);

}  // namespace fluid
