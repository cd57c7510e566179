#pragma once

#include <string>

#include "ir/graph.h"

namespace fluid {

/// Adds a cache: a state that predict steps read and write, such as the keys and values of earlier
/// positions in a decoder. The cache is zero at first and keeps its value between predict steps.
/// Parameter files and checkpoints do not contain it. Training and eval steps do not write it. The
/// shape must not depend on the batch size. The current scope of `graph` is prepended to `name`.
/// Throws UserError when the name is taken.
Value cache(ir::Graph& graph, const std::string& name, const Shape& shape, DType dtype,
            const Loc& loc = Loc::here());

/// Assigns `next` to the cache at the end of a predict step. A step that lacks a feed on which
/// `next` depends does not change the cache. Within the step, reads of the cache return the old
/// value. Throws UserError unless `cached` is a cache and `next` has its type.
void update_cache(Value cached, Value next, const Loc& loc = Loc::here());

}  // namespace fluid
