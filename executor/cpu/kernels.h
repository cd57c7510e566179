#pragma once

#include <string>
#include <vector>

#include "codegen/kernel_ir.h"
#include "ir/graph.h"

namespace fluid {

/// The generated kernel of a `fused` op. Its name is derived from its content, so that equal groups
/// of different programs share machine code and cache entries.
kir::Kernel kernel_of(const ir::Op& fused);

/// Offsets of a kernel's scratch buffers in its workspace, in the order of the kernel's buffers,
/// and the bytes of the whole.
struct ScratchLayout {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
};
ScratchLayout scratch_layout(const kir::Kernel& kernel, int64_t batch);

}  // namespace fluid
