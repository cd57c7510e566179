#include "executor/cpu/cpu_executable.h"

#include <algorithm>
#include <cstring>

#include "executor/device/forks.h"
#include "executor/host/parallel.h"
#include "ops/table.h"

namespace fluid {
namespace {

constexpr double kParallelFlops = 60e3;  // below this, waking the pool costs more than it saves

/// Records when the calls of a run begin and end.
class CallClock {
 public:
  explicit CallClock(RunTimes& times) : calls_(times.calls) {}
  void wait_begins(size_t call) const { calls_[call].wait.begin = clock_ns(); }
  void wait_ends(size_t call) const { calls_[call].wait.end = clock_ns(); }
  void begins(size_t call) const { calls_[call].call.begin = clock_ns(); }
  void ends(size_t call) const { calls_[call].call.end = clock_ns(); }
  TimeSpan* exchange(size_t call) const { return &calls_[call].exchange; }

 private:
  std::vector<CallTimes>& calls_;
};

/// The clock of an untimed run: costs nothing.
struct NoClock {
  void wait_begins(size_t) const {}
  void wait_ends(size_t) const {}
  void begins(size_t) const {}
  void ends(size_t) const {}
  TimeSpan* exchange(size_t) const { return nullptr; }
};

template <class T>
bool lowers_to(const ir::Op& op) {
  return std::holds_alternative<T>(*def_of(op).lower);
}

}  // namespace

CpuExecutable::CpuExecutable(const ir::Program& program, const MemoryPlan& plan,
                             const Options& options, KernelMemo& kernels, Compiler& compiler,
                             int threads, CollectiveQueue* exchanges)
    : plan_(plan),
      batch_(options.batch),
      threads_(threads),
      // Only training steps use collectives. Every micro-batch waits for the queue to drain.
      collective_queue_(options.mode == Mode::train ? exchanges : nullptr) {
  const ir::Graph& main = program.main();
  add_kernels(main, kernels, compiler);
  for (size_t i = 0; i < main.ops.size(); ++i) {
    if (lowers_to<Store>(*main.ops[i])) add_store(*main.ops[i], static_cast<int>(i));
  }
  await_collectives();
  if (options.guard_plan) guard_.emplace(plan, static_cast<int>(main.ops.size()));
}

Step CpuExecutable::step_of(ir::Op& op, int position) const {
  Step step;
  step.op = &op;
  step.position = position;
  step.refs = buffers_of(plan_, op);
  step.updates = updates_variables(op, step.refs);
  return step;
}

void CpuExecutable::add_library(Step step) {
  LibraryRoutine kernel = library_kernel(*step.op, batch_);
  const int64_t offset = workspace_of(plan_, *step.op, kernel.workspace);
  if (kernel.workspace > 0) step.refs.push_back({.offset = offset});
  step.library = std::move(kernel.bind);
  steps_.push_back(std::move(step));
}

void CpuExecutable::add_generated(Step step, const kir::Kernel& kernel) {
  const ScratchLayout scratch = scratch_layout(kernel, batch_);
  const int64_t begin = workspace_of(plan_, *step.op, scratch.bytes);
  auto offset = scratch.offsets.begin();
  for (const kir::Buffer& buffer : kernel.buffers) {
    if (buffer.role == kir::Buffer::Role::scratch) {
      step.refs.push_back({.offset = begin + *offset++});
    } else if (buffer.role == kir::Buffer::Role::constants) {
      step.constants = kernel.constants;
      step.refs.push_back({.constants = true});
    } else if (buffer.role == kir::Buffer::Role::error) {
      step.refs.push_back({.error_word = static_cast<int>(error_words_.size())});
      for (size_t i = 0; i < step.op->operands.size(); ++i) {
        error_words_.push_back({});
        error_operands_.push_back({step.op, static_cast<int>(i)});
      }
    }
  }
  check(step.refs.size() == kernel.buffers.size(), "a kernel has buffers beyond its op's");
  step.blocks = kir::evaluate(kernel.blocks, batch_);
  step.parallel = kernel.flops_per_block * static_cast<double>(step.blocks) > kParallelFlops;
  steps_.push_back(std::move(step));
}

void CpuExecutable::add_collective(Step step) {
  check(collective_queue_ != nullptr, "a program with collectives has no communicator");
  step.exchange = collective_role(plan_, *step.op);
  steps_.push_back(std::move(step));
}

/// Makes each call wait for the collectives whose results it reads.
void CpuExecutable::await_collectives() {
  std::vector<LinkedCall> calls;
  for (Step& step : steps_) calls.push_back({step.op, &step.exchange});
  const size_t count = link_collectives(calls);
  if (count > 0) collective_queue_->reserve(count);
}

void CpuExecutable::watch_collectives() {
  for (Step& step : steps_) step.exchange.depends_on_collective = false;
}

void CpuExecutable::add_kernels(const ir::Graph& main, KernelMemo& memo, Compiler& compiler) {
  std::vector<const kir::Kernel*> kernels;
  std::vector<size_t> generated;
  for (size_t i = 0; i < main.ops.size(); ++i) {
    ir::Op& op = *main.ops[i];
    if (lowers_to<Source>(op) || lowers_to<Alias>(op) || lowers_to<Store>(op)) continue;
    if (lowers_to<CollectiveOp>(op)) {
      add_collective(step_of(op, static_cast<int>(i)));
      continue;
    }
    check(lowers_to<Composite>(op),
          [&] { return "op '" + op.name + "' reached the executor without a kernel"; });
    Step step = step_of(op, static_cast<int>(i));
    if (op.attrs.has("kernel")) {
      add_library(std::move(step));
      continue;
    }
    kernels.push_back(&memo.kernel_of(op));
    generated.push_back(steps_.size());
    add_generated(std::move(step), *kernels.back());
  }
  const std::vector<CompiledKernel> compiled = compiler.compile(kernels);
  for (size_t i = 0; i < generated.size(); ++i) steps_[generated[i]].kernel = compiled[i];
}

void CpuExecutable::add_store(const ir::Op& op, int position) {
  const auto copy = copy_of_store(plan_, op, batch_);
  if (!copy) return;
  Step step;
  step.op = &op;
  step.position = position;
  step.copy_bytes = copy->bytes;
  step.updates = copy->updates;
  step.refs = {copy->from, copy->to};
  steps_.push_back(std::move(step));
}

void CpuExecutable::bind(const Memory& memory, const Variables& variables) {
  memory_ = memory;
  reported_ = reported(variables);
  const auto address = [&](Step& step, const BufferRef& ref, Slots slots) -> void* {
    if (ref.constants) return step.constants.data();
    if (ref.error_word >= 0) return error_words_[static_cast<size_t>(ref.error_word)].data();
    return address_of(ref, memory, variables, slots);
  };
  for (Step& step : steps_) {
    for (const Slots slots : all_slots(memory)) {
      auto& buffers = step.buffers[index_of(slots)];
      buffers.clear();
      for (const BufferRef& ref : step.refs) buffers.push_back(address(step, ref, slots));
      if (!step.library) continue;
      const bool has_workspace = buffers.size() > step.op->operands.size() + 1;
      step.calls[index_of(slots)] =
          step.library(buffers.data(), has_workspace ? buffers.back() : nullptr);
    }
  }
  if (guard_) guard_->bind(memory.transient);
}

Status CpuExecutable::error() const {
  for (size_t i = 0; i < error_words_.size(); ++i) {
    const auto [bad, index] = error_words_[i];
    if (bad != 0) return {error_operands_[i].first, error_operands_[i].second, index};
  }
  return {};
}

void CpuExecutable::run_step(const Step& step, size_t slots, TimeSpan* exchange) {
  void* const* buffers = step.buffers[slots].data();
  if (step.exchange.exchanges()) {
    return collective_queue_->start(step.exchange.kind, buffers[0], step.exchange.elements,
                                    step.op->operands.front().dtype(), exchange);
  }
  if (step.copy_bytes > 0) {
    std::memcpy(buffers[1], buffers[0], static_cast<size_t>(step.copy_bytes));
    return;
  }
  run_blocks(step.kernel, buffers, batch_, step.blocks, step.parallel ? threads_ : 1);
}

/// Calls a library kernel. On failure, adds the kernel's name to the error, and whether the step
/// changed variables.
void CpuExecutable::call_library(const Step& step, size_t slots, bool updated) {
  try {
    step.calls[slots]();
  } catch (const DeviceError& e) {
    throw DeviceError((step.op->loc.known() ? step.op->loc.str() + ": " : "") +
                      step.op->attrs.get<std::string>("kernel") + " failed: " + e.what() +
                      (updated ? "; the step was applied in part: start again from saved parameters"
                               : "; the step was not applied"));
  }
}

std::vector<const ir::Op*> CpuExecutable::calls() const {
  std::vector<const ir::Op*> ops;
  for (const Step& step : steps_) ops.push_back(step.op);
  return ops;
}

Status CpuExecutable::run_timed(size_t slots, RunTimes* times) {
  return times == nullptr ? run_steps(slots, NoClock()) : run_steps(slots, CallClock(*times));
}

std::optional<Status> CpuExecutable::start(Slots slots, RunTimes* times) {
  const Status status = run_all(index_of(slots), times);
  std::byte* report = memory_.reports[static_cast<size_t>(slots.outputs)];
  for (const Reported& r : reported_) {
    std::memcpy(report + r.cell * StepReport::kCell, memory_.state + r.offset,
                static_cast<size_t>(r.bytes()));
  }
  return status;
}

Status CpuExecutable::finish(int) { throw InternalError("a step on the CPU runs synchronously"); }

Status CpuExecutable::run_all(size_t slots, RunTimes* times) {
  const LibraryThreads guard(threads_);
  if (threads_ > 1) before_threads(threads_);
  if (collective_queue_ == nullptr) return run_timed(slots, times);
  Status status;
  try {
    status = run_timed(slots, times);
    if (times != nullptr) times->last_wait.begin = clock_ns();
    if (status.good()) collective_queue_->wait_for_all();
    if (times != nullptr) times->last_wait.end = clock_ns();
  } catch (...) {
    collective_queue_->abandon();
    throw;
  }
  if (!status.good()) collective_queue_->abandon();
  return status;
}

template <class Clock>
Status CpuExecutable::run_steps(size_t slots, const Clock& clock) {
  std::fill(error_words_.begin(), error_words_.end(), std::array<int64_t, 2>{});
  if (guard_) guard_->start();
  bool updated = false;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (watch_ && step.exchange.depends_on_collective) {
      if (guard_) guard_->after(step.position, *step.op);
      continue;
    }
    if (step.exchange.awaited_collectives > 0) {
      clock.wait_begins(i);
      collective_queue_->wait(step.exchange.awaited_collectives);
      clock.wait_ends(i);
    }
    if (watch_ && !watch_(*step.op, step.buffers[slots].data(), false)) return {};
    if (step.updates) {
      if (const Status status = error(); !status.good()) return status;
    }
    clock.begins(i);
    if (step.library) {
      call_library(step, slots, updated);
    } else {
      run_step(step, slots, clock.exchange(i));
    }
    updated |= step.updates;
    if (step.kernel.finish != nullptr) {
      // A reduction may feed an update in the same kernel, so errors are checked before the finish.
      if (step.updates) {
        if (const Status status = error(); !status.good()) return status;
      }
      step.kernel.finish(step.buffers[slots].data(), batch_, 0, 0);
    }
    clock.ends(i);
    if (guard_) guard_->after(step.position, *step.op);
    if (watch_ && !watch_(*step.op, step.buffers[slots].data(), true)) return {};
  }
  return error();
}

}  // namespace fluid
