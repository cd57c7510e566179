#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "executor/device/buffer_refs.h"
#include "executor/device/collective_role.h"
#include "executor/device/kernel_memo.h"
#include "executor/gpu/gpu_kernels.h"
#include "executor/gpu_driver/gpu.h"
#include "executor/gpu_libraries/gpu_library_call.h"

namespace fluid {

/// One kernel launch of a call.
struct GpuPass {
  /// Buffers of the kernel. plain: the call's buffers. guarded: the call's buffers and the
  /// rejection flag, which stops updates. refusal: the error words and the rejection flag, which
  /// this kernel sets.
  enum class Kind : uint8_t { plain, guarded, refusal };
  kir::Kernel kernel;
  Kind kind = Kind::plain;
  bool waits_for_error_sync =
      false;  ///< waits for the collective that exchanges the rejection flag
  LoadedPass loaded = {};
};

/// One call of a step list. It is one of: the generated kernels of a fused op; a library kernel,
/// whose workspace is the last buffer; a collective; a copy of `copy_bytes` from buffer 0 to buffer
/// 1.
struct GpuCall {
  const ir::Op* op = nullptr;
  std::vector<GpuPass> passes;
  std::optional<GpuLibraryCall> library = {};
  GpuPlan gpu_plan = {};  ///< plan of the library call, set by bind()
  int revision = 0;       ///< GpuChooser::revision() that the plan stems from
  int64_t copy_bytes = 0;
  CollectiveRole exchange = {};
  size_t number = 0;  ///< index of the collective
  std::vector<BufferRef> refs;
  bool updates = false;  ///< writes variables

  bool refuses() const { return !refs.empty() && refs.back().error_word >= 0; }
};

/// The calls of a step on a GPU, in queueing order. If kernels check data, all kernels that write
/// variables come after the checks, and do nothing after a rejection. Ranks exchange the rejection
/// flag, even a rank without samples: a step that one rank rejects is applied on none.
struct GpuStepList {
  std::vector<GpuCall> calls;
  std::vector<std::pair<const ir::Op*, int>> error_operands = {};  ///< operands with error words
  size_t exchanges = 0;  ///< number of collectives of data, without the rejection flag's
  /// Index of the collective that exchanges the rejection flag.
  std::optional<size_t> refusals = {};
  size_t error_sync_before = 0;  ///< index of the call that this collective precedes
};

/// Builds the step list of a final program. `tf32`: matmuls and convolutions in f32 may round
/// operands to TF32.
GpuStepList gpu_step_list(const ir::Program& program, const MemoryPlan& plan, int64_t batch,
                          bool tf32, KernelMemo& memo);

}  // namespace fluid
