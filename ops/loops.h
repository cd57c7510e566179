#pragma once

// Ops that build their own kernels (Loops). Such an op is always a fused group of its own.

#include <string>
#include <vector>

#include "ops/op_def.h"

namespace fluid {

/// Upper bound of cpu_accumulators().
inline constexpr int64_t kMaxCpuAccumulators = 24;
/// Number of accumulators, each a vector of kir::kVectorBytes, that fit in three quarters of a
/// CPU's vector registers. The other registers hold operands. `vector_bits`: width of a register.
int64_t cpu_accumulators(int vector_bits);

/// Argument of Loops::kernel: the op, its types and attributes, and the device on which the kernel
/// runs.
class LoopsCtx : public LowerCtx {
 public:
  /// `op`, `in` and `out` must outlive the LoopsCtx.
  LoopsCtx(const ir::Op& op, const std::vector<Type>& in, const std::vector<Type>& out,
           KernelDevice device, int64_t accumulators)
      : LowerCtx(in, out, op.attrs), op_(op), device_(device), accumulators_(accumulators) {}
  const ir::Op& op() const { return op_; }
  KernelDevice device() const { return device_; }
  int64_t accumulators() const { return accumulators_; }  ///< see cpu_accumulators()

 private:
  const ir::Op& op_;
  KernelDevice device_;
  int64_t accumulators_;
};

/// Returns the Loops op of a fused body; null if there is none. The other ops of the body must be
/// "arg" ops.
const ir::Op* loops_op(const ir::Graph& body);

/// Returns the kernel of a Loops op in a fused body. Its buffers are ordered as in
/// codegen/schedule.h: one per arg, one per output, scratch buffers, error words.
kir::Kernel loops_kernel(const ir::Op& op, const std::string& name, KernelDevice device,
                         int64_t accumulators = kMaxCpuAccumulators);
/// Like the function above, but uses the definition `def`, which need not be in the op table.
kir::Kernel loops_kernel(const ir::Op& op, const OpDef& def, const std::string& name,
                         KernelDevice device, int64_t accumulators = kMaxCpuAccumulators);

/// Returns the pairs (output, arg) that may share a buffer in the fused body of a Loops op.
std::vector<InPlace> loops_in_place_pairs(const ir::Op& op);

}  // namespace fluid
