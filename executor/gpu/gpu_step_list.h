#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "executor/device/buffer_refs.h"
#include "executor/device/collective_role.h"
#include "executor/device/kernel_cache.h"
#include "executor/device/step_calls.h"
#include "executor/gpu/gpu_kernels.h"
#include "executor/gpu_driver/gpu.h"
#include "executor/gpu_libraries/gpu_library_call.h"

namespace fluid {

/// One launch of a generated kernel within a call.
struct GpuKernelLaunch {
  /// - plain: a kernel on the call's buffers.
  /// - guarded: a kernel that also reads the rejection flag, and writes nothing if the flag is set.
  /// - rejection: the kernel that sets the rejection flag if any error word is set.
  enum class Kind : uint8_t { plain, guarded, rejection };
  kir::Kernel kernel;
  Kind kind = Kind::plain;
  /// Whether the launch waits for the all-reduce of the rejection flag.
  bool waits_for_error_sync = false;
  LoadedKernel loaded = {};
};

/// One call of a step list. There are four kinds:
/// - the generated kernels of a fused op;
/// - a library kernel, whose last buffer is its workspace;
/// - a collective;
/// - a copy of `copy_bytes` bytes from buffer 0 to buffer 1.
struct GpuCall {
  const ir::Op* op = nullptr;
  /// Index of the op in the main graph. For an op in a scan: index of the scan.
  int position = 0;
  std::vector<GpuKernelLaunch> launches = {};
  std::optional<GpuLibraryCall> library = {};
  GpuPlan gpu_plan = {};  ///< plan of the library call; set by GpuExecutable::bind()
  int revision = 0;       ///< GpuAlgorithmSelector::revision() when gpu_plan was created
  int64_t copy_bytes = 0;
  CollectiveRole collective = {};
  /// Index of the collective in queueing order, not counting error_sync.
  size_t collective_index = 0;
  std::vector<BufferRef> refs = {};
  bool updates_variables = false;  ///< whether the call writes variables

  bool has_error_words() const { return !refs.empty() && refs.back().error_word >= 0; }
};

/// The calls of a step on a GPU, in queueing order. If kernels check data, all kernels that write
/// variables run after the checks, and do nothing if the rejection flag is set. All ranks, even
/// those without samples, take part in the all-reduce of the rejection flag. So a step that one
/// rank rejects updates no variable on any rank.
struct GpuStepList {
  std::vector<GpuCall> calls;
  /// For each pair of error words: the op and the index of the checked operand.
  std::vector<std::pair<const ir::Op*, int>> error_operands = {};
  size_t collective_count = 0;  ///< number of collectives, not counting error_sync
  /// `index` of GpuCollectives::start() for the all-reduce of the rejection flag; nullopt if the
  /// step has no such all-reduce.
  std::optional<size_t> error_sync = {};
  size_t error_sync_before = 0;  ///< index of the call before which error_sync is queued
};

/// Builds the step list of a program on which all passes have run.
GpuStepList gpu_step_list(const ir::Program& program, const MemoryPlan& plan,
                          const Options& options, KernelCache& kernel_cache);

}  // namespace fluid
