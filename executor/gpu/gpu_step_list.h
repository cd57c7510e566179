#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "executor/device/buffer_refs.h"
#include "executor/device/exchange_calls.h"
#include "executor/device/kernel_memo.h"
#include "executor/gpu/gpu.h"
#include "executor/gpu/gpu_kernels.h"
#include "executor/gpu/gpu_library_call.h"

namespace fluid {

/// A pass of a call.
struct GpuPass {
  /// What it is given: the call's buffers; these and the word that says that data was refused, by
  /// this step or one before; or, to set that word, the error words and it.
  enum class Kind : uint8_t { plain, guarded, refusal };
  kir::Kernel kernel;
  Kind kind = Kind::plain;
  bool heeds = false;  ///< it comes after what other processes told of data that they refused
  LoadedPass loaded = {};
};

/// One call of a step list: the passes of a group, a library kernel, whose workspace is the
/// last buffer, an exchange with other processes, or else a copy of `copy_bytes` from buffer 0 to
/// buffer 1.
struct GpuCall {
  const ir::Op* op = nullptr;
  std::vector<GpuPass> passes;
  std::optional<GpuLibraryCall> library = {};
  GpuMultiplier multiplier = {};  ///< of the library call, once it is bound
  int revision = 0;               ///< of GpuChooser, that the multiplier is of
  int64_t copy_bytes = 0;
  ExchangeRole exchange = {};
  size_t number = 0;  ///< of the exchange
  std::vector<BufferRef> refs;
  bool updates = false;  ///< writes variables

  bool refuses() const { return !refs.empty() && refs.back().error_word >= 0; }
};

/// What a step on a GPU queues, in this order. Where kernels may refuse the data, what writes to
/// variables looks itself whether they did: it comes after all of them, and then does nothing.
/// Processes that exchange sums tell each other whether they did, those too that have no sample to
/// refuse: a step that one of them refuses none applies.
struct GpuStepList {
  std::vector<GpuCall> calls;
  std::vector<std::pair<const ir::Op*, int>> error_operands = {};  ///< that have error words
  size_t exchanges = 0;                                            ///< of sums and shares
  std::optional<size_t> refusals = {};  ///< the number of that by which processes tell of refusals
  size_t tells_before = 0;              ///< which call, then
};

/// That of a final program. `tf32`: its products and convolutions in f32 may round operands to it.
GpuStepList gpu_step_list(const ir::Program& program, const MemoryPlan& plan, int64_t batch,
                          bool tf32, KernelMemo& memo);

}  // namespace fluid
