#pragma once

#include "ir/graph.h"
#include "ops/kernel_ir.h"

namespace fluid {

/// Schedules a fused group for the CPU. Returns its kernel. `body` is the body of the fused op:
/// "arg" ops (attribute `index`), either ops that lower to Map or Reduce or one that lowers to
/// Loops, and outputs in the order of the results of the fused op. The buffers of the kernel are
/// one per arg, one per output, then scratch buffers, then error words if an index is
/// data-dependent. The error words are i64[inputs, 2]: for each input, 1 if it was read out of
/// range, and the index. Without an error all words are zero. If several indices are out of range,
/// the words hold one of them: threads race, but the writes of a word are atomic.
kir::Kernel schedule(const ir::Graph& body, const std::string& name);

}  // namespace fluid
