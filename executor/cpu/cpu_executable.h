#pragma once

#include <array>
#include <string>
#include <vector>

#include "codegen/compiler.h"
#include "executor/comm/collective_queue.h"
#include "executor/cpu/plan_guard.h"
#include "executor/cpu_libraries/library.h"
#include "executor/device/buffer_refs.h"
#include "executor/device/collective_role.h"
#include "executor/device/kernel_memo.h"
#include "executor/device/step_report.h"

namespace fluid {

/// One call of a step list: a generated kernel, a library kernel, a copy of `copy_bytes` from
/// buffer 0 to buffer 1, or a collective.
struct Step {
  const ir::Op* op = nullptr;
  int position = 0;  ///< index of the op in main
  CompiledKernel kernel;
  LibraryBinder library;  ///< absent: a generated kernel or a copy
  int64_t copy_bytes = 0;
  CollectiveRole exchange;
  std::vector<BufferRef> refs;
  std::vector<int64_t> constants;             ///< constants of a generated kernel
  std::array<std::vector<void*>, 4> buffers;  ///< bound addresses, by index_of(slots)
  std::array<LibraryCall, 4> calls;           ///< bound library calls, by index_of(slots)
  int64_t blocks = 0;
  bool parallel = false;
  bool updates = false;  ///< writes variables: runs only if no error word is set
};

/// The step list of a program on the CPU.
class CpuExecutable : public Executable {
 public:
  CpuExecutable(const ir::Program& program, const MemoryPlan& plan, const Options& options,
                KernelMemo& kernels, Compiler& compiler, int threads, CollectiveQueue* exchanges);
  void bind(const Memory& memory, const Variables& variables) override;
  std::optional<Status> start(Slots slots, RunTimes* times) override;
  Status finish(int outputs) override;
  std::vector<const ir::Op*> calls() const override;
  void watch(Watch watch) override { watch_ = std::move(watch); }
  /// Includes collectives, and the calls that depend on their results, in watched runs. Only valid
  /// if no other rank takes part.
  void watch_collectives();

 private:
  void add_kernels(const ir::Graph& main, KernelMemo& memo, Compiler& compiler);
  void add_store(const ir::Op& op, int position);
  Step step_of(ir::Op& op, int position) const;
  void add_library(Step step);
  void add_generated(Step step, const kir::Kernel& kernel);
  void add_collective(Step step);
  void await_collectives();
  template <class Clock>
  Status run_steps(size_t slots, const Clock& clock);
  Status run_timed(size_t slots, RunTimes* times);
  Status run_all(size_t slots, RunTimes* times);
  void run_step(const Step& step, size_t slots, TimeSpan* exchange);
  static void call_library(const Step& step, size_t slots, bool updated);
  Status error() const;

  const MemoryPlan& plan_;
  int64_t batch_;
  int threads_;
  CollectiveQueue* collective_queue_;  ///< null: no collectives
  std::vector<Step> steps_;
  /// One pair per operand that may be read out of range: {1, index}, or zeros.
  std::vector<std::array<int64_t, 2>> error_words_;
  std::vector<std::pair<const ir::Op*, int>> error_operands_;
  std::optional<PlanGuard> guard_;
  Memory memory_;
  std::vector<Reported> reported_;
  Watch watch_;
};

}  // namespace fluid
