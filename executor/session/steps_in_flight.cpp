#include "executor/session/steps_in_flight.h"

#include <algorithm>

#include "executor/session/rejection.h"
#include "ops/source_kind.h"
#include "passes/recipe.h"

namespace fluid {
namespace {

constexpr size_t kFirstSample = 2;  // word of state rng: seed, run counter, first sample

}  // namespace

/// Drops cached state after a rebind: binding may overwrite the slots, and variables may have
/// moved.
void StepsInFlight::refresh_bindings() {
  if (bindings_ == steps_.bindings()) return;
  bindings_ = steps_.bindings();
  held_ = {};
  placed_ = {};
  random_ = steps_.address_of(kRandomState);
  weight_ = steps_.address_of(kPartialLossWeight);
}

/// The feed slot that already holds this batch, if any.
std::optional<int> StepsInFlight::slot_with(const PreparedStep& step, const Batch& batch) const {
  const Held wanted = feed_slot_content(step, batch);
  const auto held = std::ranges::find(held_, wanted);
  if (wanted.id == 0 || held == held_.end()) return std::nullopt;
  return static_cast<int>(held - held_.begin());
}

/// With two feed slots: the one that was not used last.
int StepsInFlight::next_feed_slot() const {
  return (slots_.feeds + 1) % steps_.memory().regions().feed_slots;
}

/// Waits for the step in flight that reads the feed slot to be overwritten. A rejection message
/// quotes the slot's content.
void StepsInFlight::free_feed_slot(uint64_t for_step) {
  const auto before = static_cast<size_t>(slots_.outputs ^ 1);
  if (in_flight_[before].slots.feeds == next_feed_slot()) finish(before, for_step);
}

/// Copies the samples of a micro-batch into a feed slot, unless a slot already holds them. The slot
/// counts as empty until the step has started, in case start() throws.
void StepsInFlight::copy_feeds(const PreparedStep& step, const PreparedStep::Run& run,
                               const Batch& batch) {
  const std::optional<int> held = slot_with(step, batch);
  slots_.feeds = held.value_or(next_feed_slot());
  slots_.new_feeds = !held;
  if (held) return;
  const auto slot = static_cast<size_t>(slots_.feeds);
  held_[slot] = {};
  std::byte* to = steps_.memory().at().host_slots.feeds[slot];
  for (const Feed& feed : run.part->feeds) {
    copy_feed(*batch.find(feed.name), feed, run.slice.first, run.slice.samples, to + feed.offset,
              steps_.device().threads());
  }
}

/// The content of a feed slot after copying `batch`. A micro-batch gets id 0, because the slot
/// holds only some of the batch's samples.
StepsInFlight::Held StepsInFlight::feed_slot_content(const PreparedStep& step, const Batch& batch) {
  return {&step, step.runs().size() == 1 ? batch.id : 0};
}

/// Writes the micro-batch's position in the global batch, which keys random numbers, and its
/// weight.
void StepsInFlight::write_batch_position(const MicroBatch& slice, const Batch& batch) {
  const int64_t first = batch.first + slice.first;
  if (random_ != nullptr && placed_.first != first) {
    steps_.memory().write(random_ + kFirstSample * sizeof first, &first, sizeof first);
    placed_.first = first;
  }
  const double weight =
      static_cast<double>(slice.samples) / static_cast<double>(batch.global_size());
  if (weight_ != nullptr && placed_.weight != weight) {
    steps_.memory().write(weight_, &weight, sizeof weight);
    placed_.weight = weight;
  }
}

std::optional<Status> StepsInFlight::start_micro_batch(const PreparedStep& step, size_t number,
                                                       const Batch& batch, RunTimes* times) {
  const PreparedStep::Run& run = step.runs()[number];
  if (times != nullptr) times->feeds.begin = clock_ns();
  copy_feeds(step, run, batch);
  if (times != nullptr) times->feeds.end = clock_ns();
  write_batch_position(run.slice, batch);
  const std::optional<Status> ended = run.part->executable->start(slots_, times);
  held_[static_cast<size_t>(slots_.feeds)] = feed_slot_content(step, batch);
  return ended;
}

/// Whether run() waits for the step, with no other step in flight. Micro-batches pass gradients on
/// to the next one. With `check_finite` the step is examined before the next one.
bool StepsInFlight::is_synchronous(const PreparedStep& step) const {
  return step.runs().size() > 1 ||
         (steps_.options().passes.check_finite && step.options().mode == Mode::train);
}

OutputViews StepsInFlight::run(PreparedStep& step, const Batch& batch) {
  steps_.require_runnable();
  refresh_bindings();
  const auto slot = static_cast<size_t>(slots_.outputs);
  StepTimes* times = step.recorder() ? step.recorder()->next() : nullptr;
  const uint64_t number = count_ + 1;
  clear_rejection(number);
  if (is_synchronous(step) || times != nullptr) wait_until_complete(number);
  finish(slot, number);
  if (!slot_with(step, batch)) free_feed_slot(number);
  if (times != nullptr) times->step.begin = clock_ns();
  InFlightStep& in_flight = in_flight_[slot];
  in_flight = {.step = &step, .number = number};
  count_ = number;
  step.begin(slot);
  start(in_flight, batch, times);
  if (is_synchronous(step)) finish(slot, number);
  slots_.outputs ^= 1;
  if (times != nullptr) {
    times->step.end = clock_ns();
    step.recorder()->keep();
  }
  return {*this, step, slot, in_flight.number};
}

void StepsInFlight::start(InFlightStep& in_flight, const Batch& batch, StepTimes* times) {
  rejection_pending_ = true;  // reset once the step has started without an error
  std::optional<UserError> refused;
  try {
    run_micro_batches(in_flight, batch, times, refused);
  } catch (const DeviceError&) {
    if (!refused) throw;  // else the rejection is the error to report
  }
  if (refused) throw *refused;
  rejection_pending_ = false;
}

/// Waits for all steps and clears the rejection flag after a rejected or failed step, so that the
/// next step may change variables. An earlier step may have set the flag unnoticed. `for_step`: as
/// in finish().
void StepsInFlight::clear_rejection(uint64_t for_step) {
  if (!rejection_pending_) return;
  wait_until_complete(for_step);
  steps_.memory().allow_updates();
  rejection_pending_ = false;
}

/// Runs the micro-batches of a step. A single one may run asynchronously. If ranks exchange the
/// rejection flag in the last micro-batch, the remaining ones run even after a rejection: the other
/// ranks wait in that collective.
void StepsInFlight::run_micro_batches(InFlightStep& in_flight, const Batch& batch, StepTimes* times,
                                      std::optional<UserError>& refused) {
  const PreparedStep& step = *in_flight.step;
  const bool tells = steps_.memory().at().refused != nullptr && steps_.options().passes.exchanges();
  for (size_t i = 0; i < step.runs().size(); ++i) {
    std::optional<Status> status =
        start_micro_batch(step, i, batch, times == nullptr ? nullptr : &times->runs[i]);
    in_flight.slots = slots_;
    if (!status && step.runs().size() == 1) {
      in_flight.pending = true;
      return;
    }
    if (!status) status = step.runs()[i].part->executable->finish(slots_.outputs);
    if (!status->good() && !refused) refused = rejection_of(in_flight, i, *status);
    if (refused && !tells) return;
    step.gather(i, static_cast<size_t>(slots_.outputs), steps_.memory());
  }
}

/// Waits for the step in `slot`, after any step started before it. Errors are worded for the
/// caller: step `for_step`, which may not have started, or 0 for a call that runs no step.
void StepsInFlight::finish(size_t slot, uint64_t for_step) {
  InFlightStep& in_flight = in_flight_[slot];
  if (!in_flight.pending) return;
  const InFlightStep& other = in_flight_[1 - slot];
  if (other.pending && other.number < in_flight.number) finish(1 - slot, for_step);
  in_flight.pending = false;
  const auto reported_by = [&](const UserError& refusal, uint64_t step) {
    return with_step_position(refusal,
                              {.number = in_flight.number, .reported_by = step, .last = count_});
  };
  try {
    const auto& run = in_flight.step->runs().front();
    const Status status = run.part->executable->finish(static_cast<int>(slot));
    if (!status.good()) throw rejection_of(in_flight, 0, status);
  } catch (const UserError& refusal) {
    abandon(in_flight, std::current_exception(),
            std::make_exception_ptr(reported_by(refusal, in_flight.number + 1)));
    throw reported_by(refusal, for_step);
  } catch (...) {
    abandon(in_flight, std::current_exception(), std::current_exception());
    throw;
  }
}

/// The error for data rejected by run number `run` of a step. The host's feed slot still holds the
/// data.
UserError StepsInFlight::rejection_of(const InFlightStep& in_flight, size_t run,
                                      const Status& status) const {
  const auto& [slice, part] = in_flight.step->runs()[run];
  const std::byte* slot =
      steps_.memory().at().host_slots.feeds[static_cast<size_t>(in_flight.slots.feeds)];
  Batch fed{.size = slice.samples, .columns = {}};
  for (const Feed& feed : part->feeds) {
    fed.columns.emplace_back(feed.name,
                             Tensor::view(feed.type.dtype, extents(feed.type.shape, slice.samples),
                                          const_cast<std::byte*>(slot) + feed.offset));
  }
  const bool went_on = in_flight_[in_flight.slots.outputs ^ 1].pending;
  return refusal(status, {.feeds = fed,
                          .first = slice.first,
                          .went_on = went_on,
                          .find_sample = steps_.options().find_sample});
}

/// Records why a step failed. A step started after it was not applied either and fails with
/// `why_later`.
void StepsInFlight::abandon(InFlightStep& failed, const std::exception_ptr& why,
                            const std::exception_ptr& why_later) {
  failed.failure = why;
  rejection_pending_ = true;
  const int slot = failed.slots.outputs ^ 1;
  InFlightStep& later = in_flight_[static_cast<size_t>(slot)];
  if (!later.pending) return;
  later.pending = false;
  later.failure = why_later;
  try {
    later.step->runs().front().part->executable->finish(slot);
  } catch (const DeviceError&) {
    return;  // `why` came first and is reported
  }
}

void StepsInFlight::wait_until_complete(uint64_t for_step) {
  finish(0, for_step);
  finish(1, for_step);
}

void StepsInFlight::wait_for_inference() {
  for (size_t slot = 0; slot < 2; ++slot) {
    const InFlightStep& in_flight = in_flight_[slot];
    if (in_flight.pending && in_flight.step->options().mode != Mode::train) {
      finish(slot, count_ + 1);
    }
  }
}

void StepsInFlight::rerun_watched(const PreparedStep& step, size_t last, const Batch& batch,
                                  const See& see) {
  refresh_bindings();
  in_flight_[static_cast<size_t>(slots_.outputs)] = {};  // the rerun overwrites its outputs
  bool goes_on = true;
  for (size_t i = 0; goes_on && i <= last; ++i) {
    Executable& executable = *step.runs()[i].part->executable;
    executable.watch([&](const ir::Op& op, void* const* buffers, bool done) {
      return goes_on = see(i, op, buffers, done);
    });
    check(start_micro_batch(step, i, batch, nullptr).has_value(), "a step that is watched goes on");
  }
}

StepsInFlight::InFlightStep& StepsInFlight::done(size_t slot, uint64_t number) {
  InFlightStep& in_flight = in_flight_[slot];
  if (in_flight.number != number) {
    throw UserError(
        "outputs are read after two later steps, which reuse their memory: read them earlier, or "
        "keep a copy()");
  }
  finish(slot, number);
  if (in_flight.failure) std::rethrow_exception(in_flight.failure);
  return in_flight;
}

const std::vector<OutputView>& StepsInFlight::outputs(size_t slot, uint64_t number) {
  return done(slot, number).step->read(slot);
}

void StepsInFlight::fetch(size_t slot, uint64_t number, size_t output) {
  done(slot, number).step->fetch(slot, output, steps_.memory());
}

std::byte* StepsInFlight::report(size_t slot, uint64_t number) {
  done(slot, number);
  return steps_.memory().at().reports[slot];
}

void StepsInFlight::fetch_outputs() {
  wait_until_complete();
  for (size_t slot = 0; slot < 2; ++slot) {
    const InFlightStep& in_flight = in_flight_[slot];
    if (in_flight.number == 0 || in_flight.failure) continue;
    for (size_t i = 0; i < in_flight.step->outputs(); ++i)
      in_flight.step->fetch(slot, i, steps_.memory());
  }
}

}  // namespace fluid
