#pragma once

#include "ir/graph.h"

namespace fluid::ir {

/// Whether a result type of `op`, or a type in its attributes, depends on the sequence length
/// (fluid::kLength).
bool has_length(const Op& op);
/// Whether has_length() is true for any op of `program`.
bool has_length(const Program& program);

/// Whether a type in `attrs` depends on the sequence length.
bool has_length(const Attrs& attrs);
/// Returns `attrs` with kLength replaced by `length` in all types. Throws UserError on overflow.
Attrs at_length(Attrs attrs, int64_t length);

}  // namespace fluid::ir
