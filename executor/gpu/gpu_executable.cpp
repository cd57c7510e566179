#include "executor/gpu/gpu_executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "executor/device/library_task.h"
#include "executor/profile/call_info.h"
#include "ops/scan.h"

namespace fluid {
namespace {

std::vector<ByteRange> feed_ranges_of(const MemoryPlan& plan) {
  std::vector<ByteRange> feeds;
  for (const auto& [value, range] : plan.values) {
    if (range.region != Region::feeds || range.bytes == 0) continue;
    feeds.push_back({range.offset, range.bytes});
  }
  return merge_ranges(std::move(feeds));
}

}  // namespace

GpuExecutable::GpuExecutable(const ir::Program& program, const MemoryPlan& plan,
                             const Options& options, std::shared_ptr<const OpenGpu> gpu,
                             KernelCache& kernel_cache, GpuKernels& kernels,
                             GpuAlgorithmSelector& selector,
                             std::shared_ptr<GpuCollectives> collectives,
                             std::shared_ptr<const GpuFeeds> feeds)
    : plan_(plan),
      batch_(options.batch),
      gpu_(std::move(gpu)),
      selector_(selector),
      collectives_(std::move(collectives)),
      step_list_(gpu_step_list(program, plan, options, kernel_cache)),
      feed_copier_(std::move(feeds)),
      feed_ranges_(feed_ranges_of(plan)) {
  check(collectives_ != nullptr || !has_collectives(),
        "a program with collectives has no communicator");
  if (collectives_ != nullptr)
    collectives_->reserve(step_list_.collective_count + (step_list_.error_sync ? 1 : 0));
  load_kernels(kernels);
  results_.emplace(gpu_, plan, options.recipe, step_list_.error_operands,
                   step_list_.error_sync.has_value());
}

/// Queues the all-reduce of the rejection flag if its position in the step list is directly before
/// call `call`. With an observer, queues nothing, because such a step runs no collectives.
void GpuExecutable::all_reduce_rejection_flag(size_t call) const {
  if (!step_list_.error_sync || call != step_list_.error_sync_before || observer_) return;
  collectives_->start(*step_list_.error_sync, {.elements = 1}, memory_.rejection_flag, f64);
}

/// Loads the generated kernels of all calls at once, so that new kernels form one module.
void GpuExecutable::load_kernels(GpuKernels& kernels) {
  std::vector<kir::Kernel> generated;
  for (const GpuCall& call : step_list_.calls) {
    for (const GpuKernelLaunch& launch : call.launches) generated.push_back(launch.kernel);
  }
  const std::vector<LoadedKernel> loaded = kernels.load(generated);
  auto next = loaded.begin();
  for (GpuCall& call : step_list_.calls) {
    for (GpuKernelLaunch& launch : call.launches) launch.loaded = *next++;
  }
}

void GpuExecutable::enable_timing() {
  if (timeline_) return;
  std::vector<CollectiveRole> roles;
  for (const GpuCall& call : step_list_.calls) roles.push_back(call.collective);
  timeline_.emplace(gpu_, roles);
}

/// Destroys the CUDA graphs before the memory is freed, because NCCL may have registered buffers
/// during capture.
void GpuExecutable::unbind() {
  gpu_->memory_tracker.measure("graphs", [&] {
    graphs_ = {};
    timed_graphs_ = {};
  });
}

/// Destroys the old CUDA graphs before capturing new ones, because graphs use GPU memory.
void GpuExecutable::bind(const MemoryAddresses& memory, const Variables& variables) {
  unbind();
  memory_ = memory;
  results_->bind(memory, variables);
  for (const Slots slots : all_slots(memory)) {
    Buffers& buffers = buffers_[index_of(slots)];
    buffers.clear();
    for (const GpuCall& call : step_list_.calls) {
      std::vector<void*>& addresses = buffers.emplace_back();
      for (const BufferRef& ref : call.refs) {
        addresses.push_back(ref.error_word >= 0
                                ? results_->error_words() + ref.error_word * kErrorBytes
                                : address_of(ref, memory, variables, slots));
      }
    }
  }
  gpu_->memory_tracker.measure("libraries", [&] { prepare_library_calls(buffers_.front()); });
  gpu_->memory_tracker.measure("graphs", [&] {
    graphs_ = capture_graphs(nullptr);
    if (timeline_) timed_graphs_ = capture_graphs(&*timeline_);
  });
}

GpuExecutable::Graphs GpuExecutable::capture_graphs(const GpuTimeline* timeline) const {
  Graphs graphs;
  for (const Slots slots : all_slots(memory_))
    graphs[index_of(slots)] = capture_graph(slots, timeline);
  return graphs;
}

GpuGraph GpuExecutable::capture_graph(Slots slots, const GpuTimeline* timeline) const {
  return gpu_->gpu.capture(gpu_->stream, [&] {
    results_->clear_error_words();
    if (timeline != nullptr) timeline->record_step_begin();
    for (size_t call = 0; call < step_list_.calls.size(); ++call) {
      queue_call(buffers_[index_of(slots)], call, timeline);
    }
    join_collectives();
    if (timeline != nullptr) timeline->record_step_end();
    results_->copy_to_host(slots.outputs);
  });
}

/// Makes later work on the compute stream wait for all collectives.
void GpuExecutable::join_collectives() const {
  if (has_collectives()) collectives_->stream_wait(step_list_.collective_count);
  if (step_list_.error_sync) collectives_->stream_wait(*step_list_.error_sync + 1);
}

/// Queues call `index`, and makes the call wait for the collectives whose results it reads.
/// `timeline`: records the call's timing events; null: no timing.
void GpuExecutable::queue_call(const Buffers& buffers, size_t index,
                               const GpuTimeline* timeline) const {
  const GpuCall& call = step_list_.calls[index];
  const std::vector<void*>& addresses = buffers[index];
  const bool timed = timeline != nullptr;
  all_reduce_rejection_flag(index);
  if (call.collective.awaited_collectives > 0) {
    collectives_->stream_wait(call.collective.awaited_collectives);
    if (timed) timeline->record_wait_end(index);
  }
  if (call.collective.is_collective()) {
    return collectives_->start(call.collective_index, call.collective, addresses[0],
                               call.op->operands.front().dtype(),
                               timed ? &timeline->collective_span(index) : nullptr);
  }
  queue_work(call, addresses);
  if (timed) timeline->record_call_end(index);
}

void GpuExecutable::queue_work(const GpuCall& call, const std::vector<void*>& addresses) const {
  if (call.library) {
    return gpu_->gpu.execute_plan(gpu_->stream, call.gpu_plan,
                                  call.library->operands(addresses, addresses.back()));
  }
  if (call.launches.empty()) {
    return gpu_->gpu.copy(gpu_->stream, addresses[1], addresses[0], call.copy_bytes);
  }
  const bool watched = static_cast<bool>(observer_);
  for (const GpuKernelLaunch& launch : call.launches) {
    std::vector<void*> kernel_addresses = addresses;
    if (launch.kind == GpuKernelLaunch::Kind::rejection)
      kernel_addresses = {results_->error_words()};
    if (launch.kind != GpuKernelLaunch::Kind::plain)
      kernel_addresses.push_back(memory_.rejection_flag);
    if (launch.waits_for_error_sync && !watched)
      collectives_->stream_wait(*step_list_.error_sync + 1);
    launch_kernel(launch.loaded, kernel_addresses);
  }
}

void GpuExecutable::launch_kernel(const LoadedKernel& kernel,
                                  const std::vector<void*>& addresses) const {
  int64_t batch = batch_;
  std::vector<void*> arguments;
  for (void* const& address : addresses) arguments.push_back(const_cast<void**>(&address));
  arguments.push_back(&batch);
  const int64_t grid = kernel.launch.grid_size(batch_, gpu_->gpu.multiprocessors());
  if (grid == 0) return;
  gpu_->gpu.launch(gpu_->stream, kernel.entry, grid, kernel.launch.threads, arguments);
}

std::optional<StepStatus> GpuExecutable::start(Slots slots, RunTimes* times) {
  if (slots.new_feeds) feed_copier_->copy(memory_, slots.feeds, feed_ranges_);
  if (observer_) return run_with_observer(slots);
  if (has_collectives())
    pending_steps_[static_cast<size_t>(slots.outputs)] = collectives_->begin_step();
  try {
    if (times != nullptr) return run_timed(slots, *times);
    launch(slots);
    return std::nullopt;
  } catch (...) {
    if (has_collectives()) collectives_->abort_step();
    throw;
  }
}

void GpuExecutable::launch(Slots slots) {
  gpu_->gpu.launch(graphs_[index_of(slots)], gpu_->stream);
  results_->record_end(slots.outputs);
  feed_copier_->record_slot_read(slots.feeds);
}

/// Waits for the step with output slot `output_slot`. If any rank has rejected the step, no rank
/// has updated its variables, and later collectives throw on all ranks.
StepStatus GpuExecutable::finish(int output_slot) {
  const GpuEvent& end = results_->end_event(output_slot);
  if (has_collectives()) {
    collectives_->synchronize(pending_steps_[static_cast<size_t>(output_slot)], end);
  } else {
    gpu_->gpu.synchronize(end);
  }
  const StepStatus own = results_->status(output_slot);
  const bool elsewhere = own.good() && results_->rejected_by_other_rank(output_slot);
  if (has_collectives() && (!own.good() || elsewhere)) collectives_->disable();
  if (!elsewhere) return own;
  throw DeviceError(
      "another rank rejected its data and reports the error: no rank applied the step");
}

std::vector<ExecutableCall> GpuExecutable::calls() const {
  std::vector<ExecutableCall> ops;
  for (const GpuCall& call : step_list_.calls) ops.push_back({call.op});
  return ops;
}

/// Copies the current contents of the operands and results of a call to host tensors.
std::vector<Tensor> GpuExecutable::host_copies(size_t call, const Buffers& buffers) const {
  std::vector<Tensor> copies;
  const ir::Op& op = *step_list_.calls[call].op;
  std::vector<Type> types;
  for (const Value& v : op.operands) types.push_back(v.type());
  for (const ir::Result& r : op.results) types.push_back(r.type);
  for (size_t i = 0; i < types.size(); ++i) {
    const int64_t bytes = types[i].bytes_at(batch_);
    const GpuMemory staging = gpu_->gpu.allocate_host(std::max<int64_t>(bytes, 1));
    gpu_->gpu.copy(gpu_->stream, staging.data(), buffers[call][i], bytes);
    gpu_->gpu.synchronize(gpu_->stream);
    Tensor& copy =
        copies.emplace_back(types[i].dtype, std::vector<int64_t>{bytes / size_of(types[i].dtype)});
    std::memcpy(copy.data(), staging.data(), static_cast<size_t>(bytes));
  }
  return copies;
}

/// Runs the calls one at a time, without a CUDA graph. Skips collectives and the calls that depend
/// on them. Calls the observer before and after each call.
StepStatus GpuExecutable::run_with_observer(Slots slots) {
  const Buffers& buffers = buffers_[index_of(slots)];
  const auto notify_observer = [&](size_t call, bool done) {
    // Does not report copies of a scan's sequence elements: their buffers are not the operands and
    // results of the scan.
    if (step_list_.calls[call].copy_bytes > 0 && is_scan(*step_list_.calls[call].op)) return true;
    std::vector<Tensor> copies = host_copies(call, buffers);
    std::vector<void*> addresses;
    for (Tensor& copy : copies) addresses.push_back(copy.data());
    return observer_(*step_list_.calls[call].op, addresses.data(), done);
  };
  results_->clear_error_words();
  for (size_t call = 0; call < step_list_.calls.size(); ++call) {
    if (step_list_.calls[call].collective.depends_on_collective) continue;
    if (!notify_observer(call, false)) return {};
    queue_call(buffers, call, nullptr);
    if (!notify_observer(call, true)) return {};
  }
  results_->copy_to_host(slots.outputs);
  gpu_->gpu.synchronize(gpu_->stream);
  return results_->status(slots.outputs);
}

/// Runs the CUDA graph that records timing events. First waits until the feeds are copied, so that
/// the measured time of the step excludes the copies.
StepStatus GpuExecutable::run_timed(Slots slots, RunTimes& times) {
  check(timeline_.has_value(), "the step was prepared without timing");
  gpu_->gpu.synchronize(gpu_->stream);
  const int64_t begin = clock_ns();
  gpu_->gpu.launch(timed_graphs_[index_of(slots)], gpu_->stream);
  results_->record_end(slots.outputs);
  const StepStatus status = finish(slots.outputs);
  timeline_->read_times(begin, times);
  return status;
}

/// Returns the buffers for trial runs of a library call: operands, results and workspace. Where
/// possible, replaces the buffers of variables by transient memory, so that trial runs do not
/// overwrite the variables.
std::vector<TrialBuffer> GpuExecutable::trial_buffers(const GpuCall& call,
                                                      const std::vector<void*>& addresses) const {
  std::vector<int64_t> bytes;
  for (const Value& v : call.op->operands) bytes.push_back(v.type().bytes_at(batch_));
  for (const ir::Result& r : call.op->results) bytes.push_back(r.type.bytes_at(batch_));
  bytes.push_back(planned_workspace(*call.op));
  std::vector<TrialBuffer> buffers;
  for (size_t i = 0; i < call.refs.size(); ++i) {
    buffers.push_back(
        {.memory = {static_cast<std::byte*>(addresses[i]), static_cast<size_t>(bytes.at(i))},
         .preserve = call.refs[i].region == Region::state});
  }
  move_preserved_buffers(buffers, {memory_.transient, static_cast<size_t>(plan_.transient)});
  return buffers;
}

/// Chooses an algorithm for every library call. May overwrite transient memory. If a call has no
/// working algorithm, still tries the other calls, then throws LibraryPreparationError. The caller
/// then recompiles the program without the failing library calls. If all failures were already
/// recorded, throws a DeviceError instead, because recompiling would not help.
void GpuExecutable::prepare_library_calls(const Buffers& buffers) {
  std::string message;
  bool newly_rejected = false;
  for (size_t i = 0; i < step_list_.calls.size(); ++i) {
    if (!step_list_.calls[i].library) continue;
    const bool known =
        selector_.record().rejection_reason(step_list_.calls[i].library->task).has_value();
    if (prepare_library_call(step_list_.calls[i], buffers[i])) continue;
    newly_rejected |= !known;
    if (message.empty()) message = library_rejection_message(step_list_.calls[i]);
  }
  if (message.empty()) return;
  const LibraryPreparationError error(message);
  if (newly_rejected) throw error;
  throw DeviceError(error.what());
}

/// Creates the plan of a library call. Returns false when the library has no working algorithm.
bool GpuExecutable::prepare_library_call(GpuCall& call, const std::vector<void*>& addresses) {
  if (call.gpu_plan && call.revision == selector_.revision()) return true;
  const std::vector<TrialBuffer> buffers = trial_buffers(call, addresses);
  std::vector<void*> pointers;
  for (const TrialBuffer& buffer : buffers) pointers.push_back(buffer.memory.data());
  GpuAlgorithmSelector::OverwritableOperands overwritable;
  for (const TrialBuffer& operand : std::span(buffers).first(call.op->operands.size())) {
    if (!operand.preserve) overwritable.push_back(operand.memory);
  }
  call.gpu_plan =
      selector_.create_plan(call.library->task, call.library->operands(pointers, pointers.back()),
                            call.library->workspace, overwritable);
  call.revision = selector_.revision();
  return static_cast<bool>(call.gpu_plan);
}

std::string GpuExecutable::library_rejection_message(const GpuCall& call) const {
  const ir::Op& head = *LibraryBody(*call.op).head;
  const GpuLibraryCall& library = *call.library;
  const std::string layer = layer_of(head), line = head.loc.str();
  return fmt::format(
      "{}{}: {}", layer, head.loc.is_known() && layer != line ? " @ " + line : "",
      rejection_message(call.op->attrs.get<std::string>("kernel"), library.task, library.workspace,
                        selector_.record().rejection_reason(library.task).value_or("")));
}

}  // namespace fluid
