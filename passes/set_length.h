#pragma once

#include "ir/graph.h"

namespace fluid {

/// Replaces the sequence length kLength by `length` in all types and attributes of a recorded
/// program, and in the numbers of steps of scans. Returns whether the program changed. Throws
/// UserError, naming the op, if an op rejects the sequence length, or if its inferred result types
/// differ from the recorded types. For example, a slice of the first 8 elements does not allow a
/// sequence length below 8.
bool set_sequence_length(ir::Program& program, int64_t length);

}  // namespace fluid
