#include "executor/gpu/gpu_executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "executor/device/library_task.h"
#include "executor/profile/call_info.h"

namespace fluid {
namespace {

std::vector<ByteRange> feeds_of(const MemoryPlan& plan) {
  std::vector<ByteRange> feeds;
  for (const auto& [value, range] : plan.values) {
    if (range.region != Region::feeds || range.bytes == 0) continue;
    feeds.push_back({range.offset, range.bytes});
  }
  return joined(std::move(feeds));
}

}  // namespace

GpuExecutable::GpuExecutable(const ir::Program& program, const MemoryPlan& plan,
                             const Options& options, std::shared_ptr<const OpenGpu> gpu,
                             KernelMemo& memo, GpuKernels& kernels, GpuChooser& chooser,
                             std::shared_ptr<GpuCollectives> collectives,
                             std::shared_ptr<const GpuFeeds> feeds)
    : plan_(plan),
      batch_(options.batch),
      gpu_(std::move(gpu)),
      chooser_(chooser),
      collectives_(std::move(collectives)),
      list_(gpu_step_list(program, plan, options.batch, options.tf32, memo)),
      feeder_(std::move(feeds)),
      feeds_(feeds_of(plan)) {
  check(collectives_ != nullptr || !exchanges(), "a program with collectives has no communicator");
  if (collectives_ != nullptr) collectives_->reserve(list_.exchanges + (list_.refusals ? 1 : 0));
  load(kernels);
  results_.emplace(gpu_, plan, list_.error_operands, list_.refusals.has_value());
}

/// Queues the collective that exchanges the rejection flag, if it comes before call number `call`.
/// A watched step runs no collectives.
void GpuExecutable::sync_error_words(size_t call) const {
  if (!list_.refusals || call != list_.error_sync_before || watch_) return;
  collectives_->start(*list_.refusals, {.elements = 1}, memory_.refused, f64);
}

/// Loads the kernels of all calls together, as one module.
void GpuExecutable::load(GpuKernels& kernels) {
  std::vector<kir::Kernel> passes;
  for (const GpuCall& call : list_.calls) {
    for (const GpuPass& pass : call.passes) passes.push_back(pass.kernel);
  }
  const std::vector<LoadedPass> loaded = kernels.load(passes);
  auto next = loaded.begin();
  for (GpuCall& call : list_.calls) {
    for (GpuPass& pass : call.passes) pass.loaded = *next++;
  }
}

void GpuExecutable::expect_times() {
  if (timeline_) return;
  std::vector<CollectiveRole> roles;
  for (const GpuCall& call : list_.calls) roles.push_back(call.exchange);
  timeline_.emplace(gpu_, roles);
}

/// Destroys the graphs: NCCL may have registered the memory for them.
void GpuExecutable::unbind() {
  gpu_->ledger.measured("graphs", [&] {
    graphs_ = {};
    timed_graphs_ = {};
  });
}

/// Destroys the old graphs first, because graphs take GPU memory.
void GpuExecutable::bind(const Memory& memory, const Variables& variables) {
  unbind();
  memory_ = memory;
  results_->bind(memory, variables);
  for (const Slots slots : all_slots(memory)) {
    Buffers& buffers = buffers_[index_of(slots)];
    buffers.clear();
    for (const GpuCall& call : list_.calls) {
      std::vector<void*>& own = buffers.emplace_back();
      for (const BufferRef& ref : call.refs) {
        own.push_back(ref.error_word >= 0 ? results_->errors() + ref.error_word * kErrorBytes
                                          : address_of(ref, memory, variables, slots));
      }
    }
  }
  gpu_->ledger.measured("libraries", [&] { prepare_library_calls(buffers_.front()); });
  gpu_->ledger.measured("graphs", [&] {
    graphs_ = captured(nullptr);
    if (timeline_) timed_graphs_ = captured(&*timeline_);
  });
}

GpuExecutable::Graphs GpuExecutable::captured(const GpuTimeline* timeline) const {
  Graphs graphs;
  for (const Slots slots : all_slots(memory_)) graphs[index_of(slots)] = captured(slots, timeline);
  return graphs;
}

GpuGraph GpuExecutable::captured(Slots slots, const GpuTimeline* timeline) const {
  return gpu_->gpu.captured(gpu_->stream, [&] {
    results_->clear_errors();
    if (timeline != nullptr) timeline->note_begin();
    for (size_t call = 0; call < list_.calls.size(); ++call) {
      queue(buffers_[index_of(slots)], call, timeline);
    }
    join_collectives();
    if (timeline != nullptr) timeline->note_end();
    results_->send(slots.outputs);
  });
}

/// Orders later work after all collectives.
void GpuExecutable::join_collectives() const {
  if (exchanges()) collectives_->await(list_.exchanges);
  if (list_.refusals) collectives_->await(*list_.refusals + 1);
}

/// Queues call `number` and what it waits for. `timeline`: null, or records the call's times.
void GpuExecutable::queue(const Buffers& buffers, size_t number,
                          const GpuTimeline* timeline) const {
  const GpuCall& call = list_.calls[number];
  const std::vector<void*>& own = buffers[number];
  const bool timed = timeline != nullptr;
  sync_error_words(number);
  if (call.exchange.awaited_collectives > 0) {
    collectives_->await(call.exchange.awaited_collectives);
    if (timed) timeline->note_awaited(number);
  }
  if (call.exchange.exchanges()) {
    return collectives_->start(call.number, call.exchange, own[0],
                               call.op->operands.front().dtype(),
                               timed ? &timeline->exchange(number) : nullptr);
  }
  queue_work(call, own);
  if (timed) timeline->note_done(number);
}

void GpuExecutable::queue_work(const GpuCall& call, const std::vector<void*>& own) const {
  if (call.library) {
    return gpu_->gpu.multiply(gpu_->stream, call.gpu_plan, call.library->factors(own, own.back()));
  }
  if (call.passes.empty()) {
    return gpu_->gpu.copy(gpu_->stream, own[1], own[0], call.copy_bytes);
  }
  const bool watched = static_cast<bool>(watch_);
  for (const GpuPass& pass : call.passes) {
    std::vector<void*> addresses = own;
    if (pass.kind == GpuPass::Kind::refusal) addresses = {results_->errors()};
    if (pass.kind != GpuPass::Kind::plain) addresses.push_back(memory_.refused);
    if (pass.waits_for_error_sync && !watched) collectives_->await(*list_.refusals + 1);
    queue(pass.loaded, addresses);
  }
}

void GpuExecutable::queue(const LoadedPass& pass, const std::vector<void*>& addresses) const {
  int64_t batch = batch_;
  std::vector<void*> arguments;
  for (void* const& address : addresses) arguments.push_back(const_cast<void**>(&address));
  arguments.push_back(&batch);
  const int64_t groups = pass.launch.groups(batch_);
  if (groups == 0) return;
  gpu_->gpu.launch(gpu_->stream, pass.entry, groups, pass.launch.threads, arguments);
}

std::optional<Status> GpuExecutable::start(Slots slots, RunTimes* times) {
  if (slots.new_feeds) feeder_->copy(memory_, slots.feeds, feeds_);
  if (watch_) return run_watched(slots);
  if (exchanges()) begun_[static_cast<size_t>(slots.outputs)] = collectives_->begin();
  try {
    if (times != nullptr) return run_timed(slots, *times);
    launch(slots);
    return std::nullopt;
  } catch (...) {
    if (exchanges()) collectives_->leave();
    throw;
  }
}

void GpuExecutable::launch(Slots slots) {
  gpu_->gpu.launch(graphs_[index_of(slots)], gpu_->stream);
  results_->note_end(slots.outputs);
  feeder_->note_reader(slots.feeds);
}

/// After a rejection on any rank, no rank applies the step, and later collectives throw on all
/// ranks.
Status GpuExecutable::finish(int outputs) {
  const GpuEvent& end = results_->end(outputs);
  if (exchanges()) {
    collectives_->wait(begun_[static_cast<size_t>(outputs)], end);
  } else {
    gpu_->gpu.synchronize(end);
  }
  const Status own = results_->status(outputs);
  const bool elsewhere = own.good() && results_->rejected_by_other_rank(outputs);
  if (exchanges() && (!own.good() || elsewhere)) collectives_->part();
  if (!elsewhere) return own;
  throw DeviceError(
      "another rank rejected its data and reports the error: no rank applied the step");
}

std::vector<const ir::Op*> GpuExecutable::calls() const {
  std::vector<const ir::Op*> ops;
  for (const GpuCall& call : list_.calls) ops.push_back(call.op);
  return ops;
}

/// Copies of the current operands and results of a call.
std::vector<Tensor> GpuExecutable::host_copies(size_t call, const Buffers& buffers) const {
  std::vector<Tensor> copies;
  const ir::Op& op = *list_.calls[call].op;
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

/// Runs call by call, skips collectives, and shows each call to the watch callback.
Status GpuExecutable::run_watched(Slots slots) {
  const Buffers& buffers = buffers_[index_of(slots)];
  const auto is_watched_on = [&](size_t call, bool done) {
    std::vector<Tensor> copies = host_copies(call, buffers);
    std::vector<void*> addresses;
    for (Tensor& copy : copies) addresses.push_back(copy.data());
    return watch_(*list_.calls[call].op, addresses.data(), done);
  };
  results_->clear_errors();
  for (size_t call = 0; call < list_.calls.size(); ++call) {
    if (list_.calls[call].exchange.depends_on_collective) continue;
    if (!is_watched_on(call, false)) return {};
    queue(buffers, call, nullptr);
    if (!is_watched_on(call, true)) return {};
  }
  results_->send(slots.outputs);
  gpu_->gpu.synchronize(gpu_->stream);
  return results_->status(slots.outputs);
}

/// Runs the graph with timing events. Copies the feeds first, so that the step's time excludes
/// them.
Status GpuExecutable::run_timed(Slots slots, RunTimes& times) {
  check(timeline_.has_value(), "the step was prepared without timing");
  gpu_->gpu.synchronize(gpu_->stream);
  const int64_t begin = clock_ns();
  gpu_->gpu.launch(timed_graphs_[index_of(slots)], gpu_->stream);
  results_->note_end(slots.outputs);
  const Status status = finish(slots.outputs);
  timeline_->read(begin, times);
  return status;
}

/// The operands, results and workspace on which a call's algorithms are tried. Variables keep their
/// content.
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
         .needed = call.refs[i].region == Region::state});
  }
  move_needed(buffers, {memory_.transient, static_cast<size_t>(plan_.transient)});
  return buffers;
}

/// Chooses an algorithm for every library call. At this point transient memory holds nothing that a
/// step needs. All calls are tried before the program is compiled again without the failing ones.
/// If all failures were known before, compiling again would not help, so a plain DeviceError is
/// thrown.
void GpuExecutable::prepare_library_calls(const Buffers& buffers) {
  std::string refused;
  bool is_news = false;
  for (size_t i = 0; i < list_.calls.size(); ++i) {
    if (!list_.calls[i].library) continue;
    const bool known = chooser_.record().refusal(list_.calls[i].library->task).has_value();
    if (prepare_library_call(list_.calls[i], buffers[i])) continue;
    is_news |= !known;
    if (refused.empty()) refused = rejection_of(list_.calls[i]);
  }
  if (refused.empty()) return;
  const LibraryRejection refusal(refused);
  if (is_news) throw refusal;
  throw DeviceError(refusal.what());
}

/// Returns false when the library has no working algorithm.
bool GpuExecutable::prepare_library_call(GpuCall& call, const std::vector<void*>& addresses) {
  if (call.gpu_plan && call.revision == chooser_.revision()) return true;
  const std::vector<TrialBuffer> buffers = trial_buffers(call, addresses);
  std::vector<void*> places;
  for (const TrialBuffer& buffer : buffers) places.push_back(buffer.memory.data());
  GpuChooser::Unused unused;
  for (const TrialBuffer& operand : std::span(buffers).first(call.op->operands.size())) {
    if (!operand.needed) unused.push_back(operand.memory);
  }
  call.gpu_plan =
      chooser_.gpu_plan(call.library->task, call.library->factors(places, places.back()),
                        call.library->workspace, unused);
  call.revision = chooser_.revision();
  return static_cast<bool>(call.gpu_plan);
}

std::string GpuExecutable::rejection_of(const GpuCall& call) const {
  const ir::Op& head = *LibraryBody(*call.op).head;
  const GpuLibraryCall& library = *call.library;
  const std::string layer = layer_of(head), line = head.loc.str();
  return fmt::format(
      "{}{}: {}", layer, head.loc.known() && layer != line ? " @ " + line : "",
      rejection_message(call.op->attrs.get<std::string>("kernel"), library.task, library.workspace,
                        chooser_.record().refusal(library.task).value_or("")));
}

}  // namespace fluid
