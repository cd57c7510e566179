#include "executor/session/steps_in_flight.h"

#include <algorithm>

#include "executor/session/rejection.h"
#include "ops/source_kind.h"
#include "passes/recipe.h"

namespace fluid {
namespace {

// The variable `rng` holds [seed, run counter, index of the first sample].
constexpr size_t kFirstSample = 2;

}  // namespace

/// Drops cached addresses and slot contents after a rebind. Binding may overwrite the slots, and
/// variables may have moved.
void StepsInFlight::refresh_bindings() {
  if (seen_bindings_ == steps_.num_bindings()) return;
  seen_bindings_ = steps_.num_bindings();
  feed_slot_contents_ = {};
  written_position_ = {};
  random_state_ = steps_.address_of(kRandomState);
  partial_loss_weight_ = steps_.address_of(kPartialLossWeight);
  first_sample_index_ = steps_.address_of(kFirstSampleIndex);
}

/// Returns the feed slot that already holds this batch; nullopt if there is none.
std::optional<int> StepsInFlight::find_feed_slot(const PreparedStep& step,
                                                 const Batch& batch) const {
  const FeedSlotContent wanted = feed_slot_content(step, batch);
  const auto content = std::ranges::find(feed_slot_contents_, wanted);
  if (wanted.id == 0 || content == feed_slot_contents_.end()) return std::nullopt;
  return static_cast<int>(content - feed_slot_contents_.begin());
}

/// Returns the feed slot to overwrite next. With two slots, returns the slot that the last step did
/// not use.
int StepsInFlight::next_feed_slot() const {
  return (slots_.feeds + 1) % steps_.memory().regions().feed_slots;
}

/// Waits for the step in flight that reads the next feed slot. The slot must not be overwritten
/// earlier, because an error message about rejected data may quote the slot's content.
void StepsInFlight::wait_for_feed_slot(uint64_t next_step) {
  const auto before = static_cast<size_t>(slots_.outputs ^ 1);
  if (in_flight_[before].slots.feeds == next_feed_slot()) finish_step(before, next_step);
}

/// Copies the samples of a micro-batch into a feed slot, unless a slot already holds them. Marks
/// an overwritten slot as empty. start_micro_batch() records its content after a successful start.
void StepsInFlight::copy_feeds(const PreparedStep& step, const PreparedStep::Run& run,
                               const Batch& batch) {
  const std::optional<int> reused = find_feed_slot(step, batch);
  slots_.feeds = reused.value_or(next_feed_slot());
  slots_.new_feeds = !reused;
  if (reused) return;
  const auto slot = static_cast<size_t>(slots_.feeds);
  feed_slot_contents_[slot] = {};
  std::byte* to = steps_.memory().addresses().host_slots.feeds[slot];
  for (const Feed& feed : run.compiled->feeds) {
    copy_feed(*batch.find(feed.name), feed, run.micro_batch.first, run.micro_batch.samples,
              to + feed.offset, steps_.device().threads());
  }
}

/// Describes a feed slot that holds `batch`. The id is 0 if the step has several micro-batches,
/// because the slot then holds one micro-batch only.
StepsInFlight::FeedSlotContent StepsInFlight::feed_slot_content(const PreparedStep& step,
                                                                const Batch& batch) {
  return {&step, step.runs().size() == 1 ? batch.id : 0};
}

/// Writes two values to the device: the weight of the micro-batch's loss, and the index of the
/// micro-batch's first sample in the global batch. Random ops and sparse gradients use the index.
void StepsInFlight::write_batch_position(const MicroBatch& micro_batch, const Batch& batch) {
  const int64_t first = batch.first + micro_batch.first;
  if (written_position_.first != first) {
    if (random_state_ != nullptr) {
      steps_.memory().write(random_state_ + kFirstSample * sizeof first, &first, sizeof first);
    }
    if (first_sample_index_ != nullptr)
      steps_.memory().write(first_sample_index_, &first, sizeof first);
    written_position_.first = first;
  }
  const double weight =
      static_cast<double>(micro_batch.samples) / static_cast<double>(batch.global_size());
  if (partial_loss_weight_ != nullptr && written_position_.weight != weight) {
    steps_.memory().write(partial_loss_weight_, &weight, sizeof weight);
    written_position_.weight = weight;
  }
}

std::optional<StepStatus> StepsInFlight::start_micro_batch(const PreparedStep& step, size_t index,
                                                           const Batch& batch, RunTimes* times) {
  const PreparedStep::Run& run = step.runs()[index];
  if (times != nullptr) times->feeds.begin = clock_ns();
  copy_feeds(step, run, batch);
  if (times != nullptr) times->feeds.end = clock_ns();
  write_batch_position(run.micro_batch, batch);
  const std::optional<StepStatus> ended = run.compiled->executable->start(slots_, times);
  feed_slot_contents_[static_cast<size_t>(slots_.feeds)] = feed_slot_content(step, batch);
  return ended;
}

/// Whether run() waits for the step. It waits for a step with several micro-batches, because each
/// one adds to the gradients of the previous one. It waits for a training step with `check_finite`,
/// because the step is checked before the next step starts.
bool StepsInFlight::is_synchronous(const PreparedStep& step) const {
  return step.runs().size() > 1 ||
         (steps_.options().passes.check_finite && step.options().mode == Mode::train);
}

OutputViews StepsInFlight::run(PreparedStep& step, const Batch& batch) {
  steps_.require_runnable();
  refresh_bindings();
  const auto slot = static_cast<size_t>(slots_.outputs);
  StepTimes* times = step.recorder() ? step.recorder()->begin_step() : nullptr;
  const uint64_t number = steps_started_ + 1;
  clear_rejection(number);
  if (is_synchronous(step) || times != nullptr) finish_both_slots(number);
  finish_step(slot, number);
  if (!find_feed_slot(step, batch)) wait_for_feed_slot(number);
  if (times != nullptr) times->step.begin = clock_ns();
  InFlightStep& in_flight = in_flight_[slot];
  in_flight = {.step = &step, .number = number};
  steps_started_ = number;
  step.mark_outputs_pending(slot);
  start_step(in_flight, batch, times);
  if (is_synchronous(step)) finish_step(slot, number);
  slots_.outputs ^= 1;
  if (times != nullptr) {
    times->step.end = clock_ns();
    step.recorder()->commit();
  }
  return {*this, step, slot, in_flight.number};
}

void StepsInFlight::run_without_outputs(PreparedStep& step) {
  wait_until_complete();  // otherwise this step could throw an earlier step's error
  run(step, Batch());
  wait_until_complete();
  slots_.outputs ^= 1;
}

void StepsInFlight::start_step(InFlightStep& in_flight, const Batch& batch, StepTimes* times) {
  rejection_pending_ = true;  // stays true if the code below throws
  std::optional<UserError> rejection;
  try {
    run_micro_batches(in_flight, batch, times, rejection);
  } catch (const DeviceError&) {
    if (!rejection) throw;  // otherwise the rejection came first and is thrown below
  }
  if (rejection) throw *rejection;
  rejection_pending_ = false;
}

/// Waits for all steps after a rejected or failed step, and clears the rejection flag, so that the
/// next step can change variables. `next_step`: as in finish_step().
void StepsInFlight::clear_rejection(uint64_t next_step) {
  if (!rejection_pending_) return;
  finish_both_slots(next_step);
  steps_.memory().clear_rejection_flag();
  rejection_pending_ = false;
}

/// Runs the micro-batches of a step. A single micro-batch may run asynchronously. If the last
/// micro-batch all-reduces the rejection flag, the remaining micro-batches run even after a
/// rejection, because the other ranks wait in the all-reduce.
void StepsInFlight::run_micro_batches(InFlightStep& in_flight, const Batch& batch, StepTimes* times,
                                      std::optional<UserError>& rejection) {
  const PreparedStep& step = *in_flight.step;
  const bool syncs_rejection = steps_.memory().addresses().rejection_flag != nullptr &&
                               steps_.options().passes.uses_collectives();
  for (size_t i = 0; i < step.runs().size(); ++i) {
    std::optional<StepStatus> status =
        start_micro_batch(step, i, batch, times == nullptr ? nullptr : &times->runs[i]);
    in_flight.slots = slots_;
    if (!status && step.runs().size() == 1) {
      in_flight.pending = true;
      return;
    }
    if (!status) status = step.runs()[i].compiled->executable->finish(slots_.outputs);
    if (!status->good() && !rejection) rejection = make_rejection_error(in_flight, i, *status);
    if (rejection && !syncs_rejection) return;
    step.gather_outputs(i, static_cast<size_t>(slots_.outputs), steps_.memory());
  }
}

/// Waits for an earlier step in flight, if any, then for the step in output slot `slot`.
/// `next_step`: number of the step that the caller is about to run, for error messages; 0: none.
void StepsInFlight::finish_step(size_t slot, uint64_t next_step) {
  InFlightStep& in_flight = in_flight_[slot];
  if (!in_flight.pending) return;
  const InFlightStep& other = in_flight_[1 - slot];
  if (other.pending && other.number < in_flight.number) finish_step(1 - slot, next_step);
  in_flight.pending = false;
  const auto reported_by = [&](const UserError& error, uint64_t step) {
    return with_step_position(
        error, {.number = in_flight.number, .reported_by = step, .last = steps_started_});
  };
  try {
    const auto& run = in_flight.step->runs().front();
    const StepStatus status = run.compiled->executable->finish(static_cast<int>(slot));
    if (!status.good()) throw make_rejection_error(in_flight, 0, status);
  } catch (const UserError& error) {
    record_failure(in_flight, std::current_exception(),
                   std::make_exception_ptr(reported_by(error, in_flight.number + 1)));
    throw reported_by(error, next_step);
  } catch (...) {
    record_failure(in_flight, std::current_exception(), std::current_exception());
    throw;
  }
}

/// Builds the error for data that run `run` of a step rejected. The feed slot on the host still
/// holds the data.
UserError StepsInFlight::make_rejection_error(const InFlightStep& in_flight, size_t run,
                                              const StepStatus& status) const {
  const auto& [micro_batch, compiled] = in_flight.step->runs()[run];
  const std::byte* slot =
      steps_.memory().addresses().host_slots.feeds[static_cast<size_t>(in_flight.slots.feeds)];
  Batch fed{.size = micro_batch.samples, .columns = {}};
  for (const Feed& feed : compiled->feeds) {
    fed.columns.emplace_back(
        feed.name, Tensor::view(feed.type.dtype, extents(feed.type.shape, micro_batch.samples),
                                const_cast<std::byte*>(slot) + feed.offset));
  }
  const bool later_step_in_flight = in_flight_[in_flight.slots.outputs ^ 1].pending;
  return rejection_error(status, {.feeds = fed,
                                  .first = micro_batch.first,
                                  .later_step_in_flight = later_step_in_flight,
                                  .find_sample = steps_.options().find_sample});
}

/// Records `why` as the error of step `failed`. If a later step is in flight, waits for the later
/// step and records `why_later` as its error. Neither step has updated the variables.
void StepsInFlight::record_failure(InFlightStep& failed, const std::exception_ptr& why,
                                   const std::exception_ptr& why_later) {
  failed.failure = why;
  rejection_pending_ = true;
  const int slot = failed.slots.outputs ^ 1;
  InFlightStep& later = in_flight_[static_cast<size_t>(slot)];
  if (!later.pending) return;
  later.pending = false;
  later.failure = why_later;
  try {
    later.step->runs().front().compiled->executable->finish(slot);
  } catch (const DeviceError&) {
    return;  // ignored: `why` is the earlier error
  }
}

void StepsInFlight::finish_both_slots(uint64_t next_step) {
  finish_step(0, next_step);
  finish_step(1, next_step);
}

void StepsInFlight::wait_for_inference() {
  for (size_t slot = 0; slot < 2; ++slot) {
    const InFlightStep& in_flight = in_flight_[slot];
    if (in_flight.pending && in_flight.step->options().mode != Mode::train) {
      finish_step(slot, steps_started_ + 1);
    }
  }
}

void StepsInFlight::rerun_observed(const PreparedStep& step, size_t last_micro_batch,
                                   const Batch& batch, const RerunObserver& observer) {
  refresh_bindings();
  // The rerun overwrites the outputs in this slot, so reading them later must throw.
  in_flight_[static_cast<size_t>(slots_.outputs)] = {};
  bool continues = true;
  for (size_t i = 0; continues && i <= last_micro_batch; ++i) {
    Executable& executable = *step.runs()[i].compiled->executable;
    executable.set_observer([&](const ir::Op& op, void* const* buffers, bool done) {
      return continues = observer(i, op, buffers, done);
    });
    check(start_micro_batch(step, i, batch, nullptr).has_value(), "a step that is watched goes on");
  }
}

StepsInFlight::InFlightStep& StepsInFlight::completed_step(size_t slot, uint64_t step_number) {
  InFlightStep& in_flight = in_flight_[slot];
  if (in_flight.number != step_number) {
    throw UserError(
        "outputs are read after two later steps, which reuse their memory: read them earlier, or "
        "keep a copy()");
  }
  finish_step(slot, step_number);
  if (in_flight.failure) std::rethrow_exception(in_flight.failure);
  return in_flight;
}

const std::vector<OutputView>& StepsInFlight::outputs(size_t slot, uint64_t step_number) {
  return completed_step(slot, step_number).step->finish_outputs(slot, steps_.memory());
}

void StepsInFlight::fetch_output(size_t slot, uint64_t step_number, size_t output) {
  completed_step(slot, step_number).step->fetch_output(slot, output, steps_.memory());
}

std::byte* StepsInFlight::step_report(size_t slot, uint64_t step_number) {
  completed_step(slot, step_number);
  return steps_.memory().addresses().reports[slot];
}

void StepsInFlight::fetch_outputs() {
  wait_until_complete();
  for (size_t slot = 0; slot < 2; ++slot) {
    const InFlightStep& in_flight = in_flight_[slot];
    if (in_flight.number == 0 || in_flight.failure) continue;
    for (size_t i = 0; i < in_flight.step->num_outputs(); ++i)
      in_flight.step->fetch_output(slot, i, steps_.memory());
  }
}

}  // namespace fluid
