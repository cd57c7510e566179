#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "codegen/compiler.h"
#include "executor/comm/collective_queue.h"
#include "executor/cpu/plan_guard.h"
#include "executor/cpu_libraries/library.h"
#include "executor/device/buffer_refs.h"
#include "executor/device/collective_role.h"
#include "executor/device/kernel_cache.h"
#include "executor/device/step_calls.h"
#include "executor/device/step_report.h"

namespace fluid {

/// One call of a compiled program: a generated kernel, a library kernel, a collective, or a copy of
/// `copy_bytes` bytes from buffer 0 to buffer 1.
struct CpuCall {
  const ir::Op* op = nullptr;
  /// Index of the op in the main graph. For an op in a scan: index of the scan.
  int position = 0;
  CompiledKernel kernel;
  LibraryBinder library;  ///< creates the library calls; empty unless the call is a library kernel
  int64_t copy_bytes = 0;
  CollectiveRole collective;
  /// Buffers by phase of the loop. A call outside of loops has only the first phase.
  std::array<std::vector<BufferRef>, CallLoop::kPhases> refs;
  std::vector<int64_t> strides;  ///< bytes per step and buffer; see CallLoop::strides
  int64_t steps = 1;             ///< number of steps of the enclosing loop; 1 if there is none
  int64_t loop = 0;              ///< CallLoop::id; 0 outside of loops
  /// For the last call of a loop: index of the loop's first call. nullopt for other calls.
  std::optional<size_t> loop_start;
  std::vector<int64_t> constants;  ///< constant table of a generated kernel
  /// Buffer addresses by phase of the loop.
  using Buffers = std::array<std::vector<void*>, CallLoop::kPhases>;
  std::array<Buffers, 4> buffers;  ///< indexed by index_of(slots)
  /// Addresses of the buffers in the current step of a loop.
  mutable std::vector<void*> step_buffers;
  /// Library kernels with bound addresses, indexed by index_of(slots). In a loop, there is either
  /// one element, which is rebound in each step, or one element per step.
  std::array<std::vector<LibraryCall>, 4> library_calls;
  int64_t blocks = 0;
  bool parallel = false;
  /// Whether the call writes variables. Such a call does not run if an error word is set.
  bool updates_variables = false;

  /// Returns the addresses of the buffers in step `step` of the loop. The addresses are valid until
  /// the next call.
  void* const* addresses(size_t slots, int64_t step) const;
};

/// A compiled program on the CPU: a list of calls with bound addresses. Runs synchronously.
class CpuExecutable : public Executable {
 public:
  CpuExecutable(const ir::Program& program, const MemoryPlan& plan, const Options& options,
                KernelCache& kernels, Compiler& compiler, int threads, CollectiveQueue* queue);
  void bind(const MemoryAddresses& memory, const Variables& variables) override;
  std::optional<StepStatus> start(Slots slots, RunTimes* times) override;
  StepStatus finish(int output_slot) override;
  std::string fingerprint() const override;
  std::vector<ExecutableCall> calls() const override;
  void set_observer(KernelObserver observer) override { observer_ = std::move(observer); }
  /// Disables the skipping of collectives in runs with an observer (see set_observer()). No other
  /// rank may take part in the collectives.
  void observe_collectives();

 private:
  void add_kernels(const ir::Graph& main, const Options& options, KernelCache& cache,
                   Compiler& compiler);
  void add_store(const ir::Op& op, int position);
  void add_library_call(const StepCall& step_call, const LibraryRoutine& kernel);
  void add_generated_call(const StepCall& step_call, const kir::Kernel& kernel);
  void add_collective_call(const StepCall& step_call);
  void set_awaited_collectives(const ir::Graph& main);
  template <class Clock>
  StepStatus run_calls(size_t slots, Clock clock);
  StepStatus run_timed(size_t slots, RunTimes* times);
  StepStatus run_with_collectives(size_t slots, RunTimes* times);
  void set_loop_starts();
  static void bind_library_call(CpuCall& call, size_t slots);
  void run_call(const CpuCall& call, void* const* buffers, TimeSpan* collective_time);
  static void call_library(const CpuCall& call, size_t slots, int64_t step, void* const* buffers,
                           bool parameters_updated);
  StepStatus data_check_status() const;

  const MemoryPlan& plan_;
  const Compiler& compiler_;
  int64_t batch_;
  std::string recipe_;  ///< name of the recipe of a training step (Options::recipe)
  int threads_;
  CollectiveQueue* collective_queue_;  ///< runs the program's collectives; null if there are none
  std::vector<CpuCall> calls_;
  /// One entry per operand of each kernel that checks indices: {1, index} if the operand was
  /// accessed at an out-of-range index, else {0, 0}.
  std::vector<std::array<int64_t, 2>> error_words_;
  /// Op and operand index of each entry of error_words_.
  std::vector<std::pair<const ir::Op*, int>> error_operands_;
  std::optional<PlanGuard> guard_;
  MemoryAddresses memory_;
  std::vector<ReportedVariable> reported_;
  KernelObserver observer_;
};

}  // namespace fluid
