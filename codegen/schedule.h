#pragma once

#include "ir/graph.h"
#include "ops/kernel_ir.h"
#include "ops/loops.h"

namespace fluid {

/// Schedules a fused group for the CPU and returns its kernel. `body`: the body of the fused op.
/// The body holds "arg" ops (attribute `index`), and either ops that lower to Map or Reduce, or a
/// single op that lowers to Loops. The outputs of the body are in the order of the results of the
/// fused op. The kernel has one buffer per arg and one per output, then scratch buffers. If an
/// index is data-dependent, the last buffer holds error words i64[inputs, 2]. If an index into an
/// input is out of range, the two words of this input are 1 and the index. Without an error all
/// words are zero. If several indices are out of range, the words hold any one of these indices:
/// threads race, but the writes of a word are atomic. `accumulators`: see cpu_accumulators();
/// results do not depend on it.
kir::Kernel schedule(const ir::Graph& body, const std::string& name,
                     int64_t accumulators = kMaxCpuAccumulators);

}  // namespace fluid
