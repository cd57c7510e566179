#include "executor/cpu/cpu_executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "executor/device/forks.h"
#include "executor/host/parallel.h"
#include "ops/table.h"

namespace fluid {
namespace {

/// Records the begin and end time of each call of a run in `times`. In a loop, each call runs once
/// per step. The span of such a call has the total duration of all steps, and starts where the span
/// of the previous call ends.
class CallClock {
 public:
  explicit CallClock(RunTimes& times) : calls_(times.calls) {}
  void wait_begins(size_t call) const { calls_[call].wait.begin = clock_ns(); }
  void wait_ends(size_t call) const { calls_[call].wait.end = clock_ns(); }
  void begins(size_t call, int64_t step) {
    started_ = clock_ns();
    TimeSpan& span = calls_[call].call;
    if (step == 0) span = {.begin = started_, .end = started_};
  }
  void ends(size_t call) const { calls_[call].call.end += clock_ns() - started_; }
  void loop_ends(size_t first, size_t last) const {
    for (size_t call = first + 1; call <= last; ++call) {
      const int64_t ns = calls_[call].call.ns();
      calls_[call].call = {.begin = calls_[call - 1].call.end,
                           .end = calls_[call - 1].call.end + ns};
    }
  }
  TimeSpan* collective_time(size_t call) const { return &calls_[call].collective; }

 private:
  std::vector<CallTimes>& calls_;
  int64_t started_ = 0;
};

/// The clock of an untimed run. Its empty functions compile to nothing.
struct NoClock {
  void wait_begins(size_t) const {}
  void wait_ends(size_t) const {}
  void begins(size_t, int64_t) const {}
  void ends(size_t) const {}
  void loop_ends(size_t, size_t) const {}
  TimeSpan* collective_time(size_t) const { return nullptr; }
};

template <class T>
bool lowers_to(const ir::Op& op) {
  return std::holds_alternative<T>(*def_of(op).lower);
}

}  // namespace

CpuExecutable::CpuExecutable(const ir::Program& program, const MemoryPlan& plan,
                             const Options& options, KernelCache& kernels, Compiler& compiler,
                             int threads, CollectiveQueue* queue)
    : plan_(plan),
      compiler_(compiler),
      batch_(options.batch),
      recipe_(options.recipe),
      threads_(threads),
      // Only training steps use collectives.
      collective_queue_(options.mode == Mode::train ? queue : nullptr) {
  const ir::Graph& main = program.main();
  add_kernels(main, options, kernels, compiler);
  for (size_t i = 0; i < main.ops.size(); ++i) {
    if (lowers_to<Store>(*main.ops[i])) add_store(*main.ops[i], static_cast<int>(i));
  }
  set_loop_starts();
  set_awaited_collectives(main);
  if (options.guard_plan) guard_.emplace(plan, static_cast<int>(main.ops.size()));
}

namespace {

CpuCall cpu_call(const StepCall& step_call) {
  CpuCall call;
  call.op = step_call.op;
  call.position = step_call.position;
  call.copy_bytes = step_call.copy_bytes;
  call.refs[CallLoop::kFirst] = step_call.refs;
  if (step_call.loop) {
    std::ranges::copy(step_call.loop->refs, call.refs.begin() + 1);
    call.strides = step_call.loop->strides;
    call.steps = step_call.loop->steps;
    call.loop = step_call.loop->id;
  }
  call.updates_variables = step_call.updates_variables();
  return call;
}

/// Adds a buffer that is the same in all steps of a loop.
void add_buffer(CpuCall& call, const BufferRef& ref) {
  call.refs[CallLoop::kFirst].push_back(ref);
  if (call.loop == 0) return;
  for (size_t phase = 1; phase < CallLoop::kPhases; ++phase) call.refs[phase].push_back(ref);
  call.strides.push_back(0);
}

}  // namespace

void CpuExecutable::add_library_call(const StepCall& step_call, const LibraryRoutine& kernel) {
  CpuCall call = cpu_call(step_call);
  const int64_t offset = step_call.workspace_offset(kernel.workspace);
  if (kernel.workspace > 0) add_buffer(call, {.offset = offset});
  call.library = kernel.bind;
  calls_.push_back(std::move(call));
}

void CpuExecutable::add_generated_call(const StepCall& step_call, const kir::Kernel& kernel) {
  CpuCall call = cpu_call(step_call);
  const ScratchLayout scratch = scratch_layout(kernel, batch_);
  const int64_t begin = step_call.workspace_offset(scratch.bytes);
  auto offset = scratch.offsets.begin();
  for (const kir::Buffer& buffer : kernel.buffers) {
    if (buffer.role == kir::Buffer::Role::scratch) {
      add_buffer(call, {.offset = begin + *offset++});
    } else if (buffer.role == kir::Buffer::Role::constants) {
      call.constants = kernel.constants;
      add_buffer(call, {.constants = true});
    } else if (buffer.role == kir::Buffer::Role::error) {
      add_buffer(call, {.error_word = static_cast<int>(error_words_.size())});
      for (size_t i = 0; i < call.op->operands.size(); ++i) {
        error_words_.push_back({});
        error_operands_.push_back({call.op, static_cast<int>(i)});
      }
    }
  }
  check(std::ssize(call.refs[CallLoop::kFirst]) == kir::argument_count(kernel),
        "a kernel has buffers beyond its op's");
  call.blocks = kir::evaluate(kernel.blocks, batch_);
  call.parallel = pays_for_threads(kernel.flops_per_block * static_cast<double>(call.blocks));
  calls_.push_back(std::move(call));
}

void CpuExecutable::add_collective_call(const StepCall& step_call) {
  check(collective_queue_ != nullptr, "a program with collectives has no communicator");
  CpuCall call = cpu_call(step_call);
  call.collective = collective_role(plan_, *call.op);
  calls_.push_back(std::move(call));
}

void CpuExecutable::set_loop_starts() {
  size_t start = 0;
  for (size_t i = 0; i < calls_.size(); ++i) {
    if (i > 0 && calls_[i].loop != calls_[i - 1].loop) start = i;
    const bool is_last = i + 1 == calls_.size() || calls_[i + 1].loop != calls_[i].loop;
    if (calls_[i].loop > 0 && is_last) calls_[i].loop_start = start;
  }
}

/// Sets for each call how many collectives must complete before the call.
void CpuExecutable::set_awaited_collectives(const ir::Graph& main) {
  std::vector<CallWithRole> calls;
  for (CpuCall& call : calls_) {
    calls.push_back({main.ops[static_cast<size_t>(call.position)].get(), &call.collective});
  }
  const size_t count = complete_collective_roles(calls);
  if (count > 0) collective_queue_->reserve(count);
}

void CpuExecutable::observe_collectives() {
  for (CpuCall& call : calls_) call.collective.depends_on_collective = false;
}

void CpuExecutable::add_kernels(const ir::Graph& main, const Options& options, KernelCache& cache,
                                Compiler& compiler) {
  // The steps of an unrolled scan share their kernels.
  std::map<const ir::Op*, size_t> generated;  // op -> index into `kernels`
  std::map<const ir::Op*, size_t> libraries;  // op -> index into `library_ops`
  std::vector<const kir::Kernel*> kernels;
  std::vector<const ir::Op*> library_ops;
  std::vector<std::pair<size_t, size_t>> uses;  // index into calls_, index into `kernels`
  const std::vector<StepCall> step_calls =
      fluid::step_calls(main, plan_, options, ScanLowering::loops);
  for (const StepCall& call : step_calls) {
    if (call.copy_bytes == 0 && call.op->attrs.has("kernel") &&
        libraries.try_emplace(call.op, library_ops.size()).second)
      library_ops.push_back(call.op);
  }
  const std::vector<LibraryRoutine> routines = library_kernels(library_ops, batch_, threads_);
  for (const StepCall& call : step_calls) {
    const ir::Op& op = *call.op;
    if (call.copy_bytes > 0) {
      calls_.push_back(cpu_call(call));
    } else if (lowers_to<CollectiveOp>(op)) {
      add_collective_call(call);
    } else if (op.attrs.has("kernel")) {
      add_library_call(call, routines[libraries.at(&op)]);
    } else {
      check(lowers_to<FusedOp>(op),
            [&] { return "op '" + op.name + "' reached the executor without a kernel"; });
      const auto [known, added] = generated.try_emplace(&op, kernels.size());
      if (added) kernels.push_back(&cache.kernel_of(op));
      uses.emplace_back(calls_.size(), known->second);
      add_generated_call(call, *kernels[known->second]);
    }
  }
  const std::vector<CompiledKernel> compiled = compiler.compile(kernels);
  for (const auto& [call, kernel] : uses) calls_[call].kernel = compiled[kernel];
}

void CpuExecutable::add_store(const ir::Op& op, int position) {
  const auto copy = store_copy(plan_, op, batch_);
  if (!copy) return;
  CpuCall call;
  call.op = &op;
  call.position = position;
  call.copy_bytes = copy->bytes;
  call.updates_variables = copy->updates_variable;
  call.refs[CallLoop::kFirst] = {copy->from, copy->to};
  calls_.push_back(std::move(call));
}

void CpuExecutable::bind(const MemoryAddresses& memory, const Variables& variables) {
  memory_ = memory;
  reported_ = variables_to_report(variables, recipe_);
  const auto address = [&](CpuCall& call, const BufferRef& ref, Slots slots) -> void* {
    if (ref.constants) return call.constants.data();
    if (ref.error_word >= 0) return error_words_[static_cast<size_t>(ref.error_word)].data();
    return address_of(ref, memory, variables, slots);
  };
  for (CpuCall& call : calls_) {
    for (const Slots slots : all_slots(memory)) {
      for (size_t phase = 0; phase < CallLoop::kPhases; ++phase) {
        std::vector<void*>& buffers = call.buffers[index_of(slots)][phase];
        buffers.clear();
        for (const BufferRef& ref : call.refs[phase]) buffers.push_back(address(call, ref, slots));
      }
      call.step_buffers.resize(call.refs[CallLoop::kFirst].size());
      if (call.library) bind_library_call(call, index_of(slots));
    }
  }
  if (guard_) guard_->bind(memory.transient);
}

void CpuExecutable::bind_library_call(CpuCall& call, size_t slots) {
  std::vector<LibraryCall>& bound = call.library_calls[slots];
  bound.clear();
  const size_t buffers = call.refs[CallLoop::kFirst].size();
  const bool has_workspace = buffers > call.op->operands.size() + 1;
  for (int64_t step = 0; step < call.steps; ++step) {
    void* const* addresses = call.addresses(slots, step);
    bound.push_back(call.library(addresses, has_workspace ? addresses[buffers - 1] : nullptr));
    if (bound.front().rebind) return;
  }
}

void* const* CpuCall::addresses(size_t slots, int64_t step) const {
  const Buffers& by_phase = buffers[slots];
  if (loop == 0) return by_phase[CallLoop::kFirst].data();
  const CallLoop::Phase phase = CallLoop::phase_of(step, steps);
  const int64_t distance = CallLoop::distance(step, phase);
  if (distance == 0) return by_phase[phase].data();
  for (size_t i = 0; i < step_buffers.size(); ++i) {
    step_buffers[i] = static_cast<std::byte*>(by_phase[phase][i]) + distance * strides[i];
  }
  return step_buffers.data();
}

StepStatus CpuExecutable::data_check_status() const {
  for (size_t i = 0; i < error_words_.size(); ++i) {
    const auto [bad, index] = error_words_[i];
    if (bad != 0) return {error_operands_[i].first, error_operands_[i].second, index};
  }
  return {};
}

void CpuExecutable::run_call(const CpuCall& call, void* const* buffers, TimeSpan* collective_time) {
  if (call.collective.is_collective()) {
    return collective_queue_->enqueue(call.collective.kind, buffers[0], call.collective.elements,
                                      call.op->operands.front().dtype(), collective_time);
  }
  if (call.copy_bytes > 0) {
    std::memcpy(buffers[1], buffers[0], static_cast<size_t>(call.copy_bytes));
    return;
  }
  run_blocks(call.kernel, buffers, batch_, call.blocks, call.parallel ? threads_ : 1);
}

/// Calls a library kernel. If the kernel throws, the rethrown error also names the kernel and
/// states whether the step has already changed variables.
void CpuExecutable::call_library(const CpuCall& call, size_t slots, int64_t step,
                                 void* const* buffers, bool parameters_updated) {
  try {
    const std::vector<LibraryCall>& bound = call.library_calls[slots];
    const LibraryCall& library =
        bound.size() == 1 ? bound.front() : bound[static_cast<size_t>(step)];
    if (call.loop > 0 && library.rebind) library.rebind(buffers);
    library.run();
  } catch (const DeviceError& e) {
    throw DeviceError((call.op->loc.is_known() ? call.op->loc.str() + ": " : "") +
                      call.op->attrs.get<std::string>("kernel") + " failed: " + e.what() +
                      (parameters_updated
                           ? "; the step was applied in part: start again from saved parameters"
                           : "; the step was not applied"));
  }
}

std::string CpuExecutable::fingerprint() const {
  std::string text =
      fmt::format("{}{}\n{} threads\n", compiler_.target_text(), library_version(), threads_);
  for (const CpuCall& call : calls_)
    text += fmt::format("{} {}\n", call.op->name, call.kernel.symbol);
  return text;
}

std::vector<ExecutableCall> CpuExecutable::calls() const {
  std::vector<ExecutableCall> ops;
  for (const CpuCall& call : calls_) ops.push_back({call.op, call.steps});
  return ops;
}

StepStatus CpuExecutable::run_timed(size_t slots, RunTimes* times) {
  return times == nullptr ? run_calls(slots, NoClock()) : run_calls(slots, CallClock(*times));
}

std::optional<StepStatus> CpuExecutable::start(Slots slots, RunTimes* times) {
  const StepStatus status = run_with_collectives(index_of(slots), times);
  std::byte* report = memory_.reports[static_cast<size_t>(slots.outputs)];
  for (const ReportedVariable& r : reported_) {
    std::memcpy(report + r.cell * StepReport::kCellBytes, memory_.state + r.offset,
                static_cast<size_t>(r.bytes()));
  }
  return status;
}

StepStatus CpuExecutable::finish(int) {
  throw InternalError("a step on the CPU runs synchronously");
}

StepStatus CpuExecutable::run_with_collectives(size_t slots, RunTimes* times) {
  const ScopedLibraryThreads guard(threads_);
  if (threads_ > 1) prepare_thread_pool(threads_);
  if (collective_queue_ == nullptr) return run_timed(slots, times);
  StepStatus status;
  try {
    status = run_timed(slots, times);
    if (times != nullptr) times->final_wait.begin = clock_ns();
    if (status.good()) collective_queue_->wait_for_all();
    if (times != nullptr) times->final_wait.end = clock_ns();
  } catch (...) {
    collective_queue_->abandon();
    throw;
  }
  if (!status.good()) collective_queue_->abandon();
  return status;
}

template <class Clock>
StepStatus CpuExecutable::run_calls(size_t slots, Clock clock) {
  std::fill(error_words_.begin(), error_words_.end(), std::array<int64_t, 2>{});
  if (guard_) guard_->begin_step();
  bool parameters_updated = false;
  int64_t step = 0;  // current step of the loop that contains the call; 0 outside of loops
  for (size_t i = 0, next = 0; i < calls_.size(); i = next) {
    const CpuCall& call = calls_[i];
    next = i + 1;
    if (observer_ && call.collective.depends_on_collective) {
      // All calls of a scan have the same depends_on_collective, so the rest of the scan is skipped
      // too. Therefore check_after_op() may poison the scan's buffers.
      if (guard_) guard_->check_after_op(call.position, *call.op);
      continue;
    }
    if (call.collective.awaited_collectives > 0 && step == 0) {
      clock.wait_begins(i);
      collective_queue_->wait_for_first(call.collective.awaited_collectives);
      clock.wait_ends(i);
    }
    void* const* buffers = call.addresses(slots, step);
    // The observer expects the operands and results of an op. The copy of a scan element has other
    // buffers.
    const bool observed = observer_ && !(call.copy_bytes > 0 && lowers_to<Scan>(*call.op));
    if (observed && !observer_(*call.op, buffers, false)) return {};
    if (call.updates_variables) {
      if (const StepStatus status = data_check_status(); !status.good()) return status;
    }
    clock.begins(i, step);
    if (call.library) {
      call_library(call, slots, step, buffers, parameters_updated);
    } else {
      run_call(call, buffers, clock.collective_time(i));
    }
    parameters_updated |= call.updates_variables;
    if (call.kernel.finish != nullptr) {
      // CompiledKernel::body may have set an error word. Check the error words before
      // CompiledKernel::finish writes variables.
      if (call.updates_variables) {
        if (const StepStatus status = data_check_status(); !status.good()) return status;
      }
      call.kernel.finish(buffers, batch_, 0, 0);
    }
    clock.ends(i);
    if (call.loop_start && ++step < call.steps) {
      next = *call.loop_start;
    } else if (call.loop_start) {
      step = 0;
      clock.loop_ends(*call.loop_start, i);
    }
    const bool last_of_op =
        next > i && (next == calls_.size() || calls_[next].position != call.position);
    if (guard_ && last_of_op) guard_->check_after_op(call.position, *call.op);
    if (observed && !observer_(*call.op, buffers, true)) return {};
  }
  return data_check_status();
}

}  // namespace fluid
