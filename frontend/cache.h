#pragma once

#include <string>

#include "ir/graph.h"

namespace fluid {

/// Adds a cache: a state that predict steps read and write, such as the keys and values of earlier
/// positions in a decoder. It is zero at first, keeps its value between predict steps, and is not
/// part of parameter files and checkpoints. Training and eval steps do not write it. The shape
/// cannot depend on the batch. The current scope of `graph` prefixes the name. Throws UserError
/// when the name is taken.
Value cache(ir::Graph& graph, const std::string& name, const Shape& shape, DType dtype,
            const Loc& loc = Loc::here());

/// Makes `next` the value of the cache at the end of each predict step that has the feeds of
/// `next`. A step that reads the cache sees the value before. Throws UserError unless `cached` is a
/// cache and `next` has its type.
void update_cache(Value cached, Value next, const Loc& loc = Loc::here());

}  // namespace fluid
