#pragma once

#include "codegen/kernel_ir.h"
#include "ir/graph.h"

namespace fluid {

/// The kernel of a fused group: `body` holds "arg" ops (attribute `index`), ops that lower to Map
/// or Reduce, and outputs in the order of the fused op's results. Buffers: one an arg, one an
/// output, then scratch, then the error words when an index comes from data: i64[inputs, 2] = {1
/// where that argument was read out of range, the index}, zero when all is well. Of several bad
/// indices any one is there: threads store them as they come, each word whole.
kir::Kernel schedule(const ir::Graph& body, const std::string& name);

}  // namespace fluid
