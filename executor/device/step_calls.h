#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "executor/device/buffer_refs.h"

namespace fluid {

/// Repeats a call in every step of a scan. From step to step, each buffer address changes by a
/// constant stride, with two exceptions. Carries alternate between two buffers, so odd and even
/// steps differ. The first step reads the initial carries from the scan's operands, and the last
/// step writes the final carries to the scan's results.
struct CallLoop {
  enum Phase : uint8_t { kFirst, kOdd, kEven, kLast };
  static constexpr size_t kPhases = 4;
  /// A scan with fewer steps is unrolled.
  static constexpr int64_t kMinSteps = 4;

  int64_t id = 0;  ///< calls of the same loop are consecutive and have the same id
  int64_t steps = 1;
  /// Buffers of the first odd step, the first even step after step 0, and the last step; indexed by
  /// Phase - 1. StepCall::refs are the buffers of the first step.
  std::array<std::vector<BufferRef>, kPhases - 1> refs = {};
  /// For each buffer: stride in bytes per step, in the phases kOdd and kEven.
  std::vector<int64_t> strides = {};

  static Phase phase_of(int64_t step, int64_t steps) {
    if (step == 0) return kFirst;
    if (step + 1 == steps) return kLast;
    return step % 2 == 1 ? kOdd : kEven;
  }
  /// Returns the number of steps from the first step of `phase` to `step`. Between
  /// these two steps, each buffer address changes by this number times the buffer's stride.
  static int64_t distance(int64_t step, Phase phase) {
    return phase == kOdd || phase == kEven ? step - phase : 0;
  }
};

/// One call of a compiled graph. The call computes an op of the main graph or of a scan's body, or
/// copies `copy_bytes` bytes from buffer 0 to buffer 1.
struct StepCall {
  ir::Op* op = nullptr;
  /// Index of the op in the main graph. For an op in a scan: index of the scan.
  int position = 0;
  /// Buffers of the operands, followed by the buffers of the results. In a loop: buffers of the
  /// first step.
  std::vector<BufferRef> refs;
  Range workspace;         ///< planned workspace; empty if `op` has none
  int64_t copy_bytes = 0;  ///< bytes of the scan element that the call copies; 0: no copy
  std::optional<CallLoop> loop = {};

  /// Whether the call writes a result to the state region, in any step of its loop.
  bool updates_variables() const;
  /// Offset of the workspace in the transient region; 0 if `bytes` is 0. Throws InternalError when
  /// the planned workspace is smaller than `bytes`.
  int64_t workspace_offset(int64_t bytes) const;
};

/// How step_calls() represents the calls of a scan.
enum class ScanLowering : uint8_t {
  unrolled,  ///< one StepCall per call in each step
  /// One StepCall with a CallLoop per call. Scans that are short or contain scans are unrolled.
  loops,
};
/// Returns the calls of the compiled graph `main`, in execution order. Omits `store` ops.
std::vector<StepCall> step_calls(const ir::Graph& main, const MemoryPlan& plan,
                                 const Options& options, ScanLowering scans);

}  // namespace fluid
