#pragma once

// Workarounds for LLVM backends that miscompile masked loads and stores. They rewrite the optimized
// LLVM IR.

namespace llvm {
class Function;
}

namespace fluid::emit {

/// Replaces each masked load with a constant mask by one scalar load per enabled lane. Works around
/// a bug in LLVM 22.1: the NVPTX backend loads all lanes and drops the passthru operand. Dropping
/// the operand is valid only if passthru is poison.
void load_lane_by_lane(llvm::Function& function);

/// Splits masked loads and stores that are wider than a vector register of `register_bits` bits,
/// and omits the parts whose lanes are all disabled. Returns whether the function changed. Works
/// around a bug in LLVM 22.1: if all lanes of a masked load are disabled, the x86 backend may emit
/// a load without a mask.
bool split_masked_accesses(llvm::Function& function, unsigned register_bits);

}  // namespace fluid::emit
