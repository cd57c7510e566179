#pragma once

#include "codegen/kernel_ir.h"
#include "ir/graph.h"

namespace fluid {

/// The kernel of a fused group: `body` holds "arg" ops (attribute `index`), ops that lower to Map
/// or Reduce, and outputs in the order of the fused op's results. Buffers: one an arg, one an
/// output, then scratch, then the error word when an index comes from data: i64[2] = {1 + number of
/// the argument that was read out of range, the index}, zero when all is well.
kir::Kernel schedule(const ir::Graph& body, const std::string& name);

}  // namespace fluid
