#pragma once

#include <cstdint>
#include <vector>

#include "executor/device/buffer_refs.h"

namespace fluid {

/// One call of a compiled graph: an op of the main graph, an op of a scan's body in one scan step,
/// or a copy of `copy_bytes` bytes from buffer 0 to buffer 1.
struct StepCall {
  ir::Op* op = nullptr;
  /// Index of the op in the main graph. For an op in a scan: index of the scan.
  int position = 0;
  std::vector<BufferRef> refs;  ///< buffers of the operands, then of the results
  Range workspace;              ///< planned workspace; empty if `op` has none
  int64_t copy_bytes = 0;       ///< for a copy: size of a sequence element of the scan `op`; else 0

  /// Whether the call writes a result to the state region.
  bool updates_variables() const;
  /// Offset of the workspace in the transient region; 0 if `bytes` is 0. Throws InternalError when
  /// the planned workspace is smaller than `bytes`.
  int64_t workspace_offset(int64_t bytes) const;
};

/// The calls of a compiled graph, in execution order, without stores. A scan contributes the calls
/// of all its steps.
std::vector<StepCall> step_calls(const ir::Graph& main, const MemoryPlan& plan,
                                 const Options& options);

}  // namespace fluid
