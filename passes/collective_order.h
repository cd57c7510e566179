#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Appends to the graph a collective `op`, such as "all_reduce", on the tensors in `bucket`. The
/// collective gets the highest order number, so it runs after the other collectives of the graph.
Values record_collective(ir::Graph& graph, std::string_view op, const Values& bucket,
                         const Loc& loc);
/// Appends to the graph a collective `op` with order number `order_number`. Adds 1 to the order
/// number of each existing collective whose order number is at least `order_number`.
Values insert_collective(ir::Graph& graph, int64_t order_number, std::string_view op,
                         const Values& bucket, const Loc& loc);

/// Marks `collective` as the collective before which the ranks exchange their error words. The
/// error word of a rank says whether the rank has rejected the data of the step.
void mark_as_error_sync(ir::Op& collective);
/// Number of collectives that run before the collective marked by mark_as_error_sync(); nullopt if
/// none is marked.
std::optional<size_t> collectives_before_error_sync(const ir::Graph& graph);

/// An ordering constraint without data flow: op `second` must run after op `first`. Such edges
/// order the collectives, because all ranks must run them in the same order. They also order the
/// collective marked by mark_as_error_sync() after all ops that may reject data.
using OrderEdge = std::pair<const ir::Op*, const ir::Op*>;
std::vector<OrderEdge> find_order_edges(const ir::Graph& graph);
/// Sorts the ops topologically by data flow and find_order_edges(). Keeps the current order where
/// possible.
void sort_by_order_edges(ir::Graph& graph);

/// For each of `values`, the order number of the last collective on which the value depends. The
/// order number is -1 if the value depends on no collective. nullopt if the graph has no
/// collective.
std::optional<std::vector<int64_t>> last_collectives(const ir::Graph& graph, const Values& values);

/// Total size in bytes of the operands of `collective` on one process.
int64_t collective_bytes(const ir::Op& collective);

/// The collectives of the graph, by ascending order number: the order in which they run.
std::vector<ir::Op*> collectives_in_order(const ir::Graph& graph);

}  // namespace fluid
