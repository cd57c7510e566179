#pragma once

#include "codegen/kernel_ir.h"
#include "ir/graph.h"

namespace fluid {

/// Returns the kernel of a fused group. `body` holds "arg" ops (attribute `index`), ops that lower
/// to Map or Reduce, and outputs in the order of the fused op's results. Buffers: one per arg, one
/// per output, then scratch, then error words if an index comes from data. The error words are
/// i64[inputs, 2] = {1 if the input was read out of range, the index}; all are zero without an
/// error. If several indices are bad, the words hold any one of them: threads race, but each word
/// is written whole.
kir::Kernel schedule(const ir::Graph& body, const std::string& name);

}  // namespace fluid
