#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "executor/device/buffer_refs.h"

namespace fluid {

/// A loop over the steps of a scan that repeats a call. All buffers move by a constant number of
/// bytes per step, with two exceptions. Carries alternate between two buffers, so odd and even
/// steps differ. The first and the last step use the operands and results of the scan.
struct CallLoop {
  enum Phase : uint8_t { kFirst, kOdd, kEven, kLast };
  static constexpr size_t kPhases = 4;
  /// A scan with fewer steps has no loop.
  static constexpr int64_t kMinSteps = 4;

  int64_t id = 0;  ///< calls of the same loop are consecutive and have the same id
  int64_t steps = 1;
  /// Buffers of the first odd step, the first even step after step 0, and the last step; indexed by
  /// Phase - 1. StepCall::refs are the buffers of the first step.
  std::array<std::vector<BufferRef>, kPhases - 1> refs = {};
  std::vector<int64_t> strides = {};  ///< bytes per step, for the phases kOdd and kEven

  static Phase phase_of(int64_t step, int64_t steps) {
    if (step == 0) return kFirst;
    if (step + 1 == steps) return kLast;
    return step % 2 == 1 ? kOdd : kEven;
  }
  /// Returns how many steps `step` is after the first step of its phase. The buffers have moved by
  /// this multiple of their strides since then.
  static int64_t distance(int64_t step, Phase phase) {
    return phase == kOdd || phase == kEven ? step - phase : 0;
  }
};

/// One call of a compiled graph: an op of the main graph, an op of a scan's body in one scan step,
/// or a copy of `copy_bytes` bytes from buffer 0 to buffer 1.
struct StepCall {
  ir::Op* op = nullptr;
  /// Index of the op in the main graph. For an op in a scan: index of the scan.
  int position = 0;
  /// Buffers of the operands, then of the results; in a loop, those of the first step.
  std::vector<BufferRef> refs;
  Range workspace;         ///< planned workspace; empty if `op` has none
  int64_t copy_bytes = 0;  ///< for a copy: size of a sequence element of the scan `op`; else 0
  std::optional<CallLoop> loop = {};

  /// Whether the call writes a result to the state region, in any step of its loop.
  bool updates_variables() const;
  /// Offset of the workspace in the transient region; 0 if `bytes` is 0. Throws InternalError when
  /// the planned workspace is smaller than `bytes`.
  int64_t workspace_offset(int64_t bytes) const;
};

/// How step_calls() lists the calls of a scan.
enum class ScanCalls : uint8_t {
  unrolled,  ///< the calls of all steps
  loops,     ///< a CallLoop; short scans, and scans that contain scans, are unrolled
};
/// The calls of a compiled graph, in execution order, without `store` ops.
std::vector<StepCall> step_calls(const ir::Graph& main, const MemoryPlan& plan,
                                 const Options& options, ScanCalls scans);

}  // namespace fluid
