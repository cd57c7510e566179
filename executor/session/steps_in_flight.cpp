#include "executor/session/steps_in_flight.h"

#include <algorithm>

#include "executor/session/refusal.h"
#include "ops/source_kind.h"
#include "passes/recipe.h"

namespace fluid {
namespace {

constexpr size_t kFirstSample = 2;  // word of state rng: seed, run counter, first sample

}  // namespace

/// Drops cached state after a rebind: binding may overwrite the slots, and variables may have
/// moved.
void StepsInFlight::follow_bindings() {
  if (bindings_ == steps_.bindings()) return;
  bindings_ = steps_.bindings();
  held_ = {};
  placed_ = {};
  random_ = steps_.address_of(kRandomState);
  weight_ = steps_.address_of(kPartWeight);
}

/// The feed slot that already holds this batch, if any.
std::optional<int> StepsInFlight::slot_with(const PreparedStep& step, const Batch& batch) const {
  const Held wanted = held_of(step, batch);
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
  if (begun_[before].slots.feeds == next_feed_slot()) finish(before, for_step);
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

/// What a feed slot holds after copying `batch`. A micro-batch gets id 0, because the slot holds
/// only some of the batch's samples.
StepsInFlight::Held StepsInFlight::held_of(const PreparedStep& step, const Batch& batch) {
  return {&step, step.runs().size() == 1 ? batch.id : 0};
}

/// Writes the micro-batch's position in the global batch, which keys random numbers, and its
/// weight.
void StepsInFlight::place_part(const SliceOfBatch& slice, const Batch& batch) {
  const int64_t first = batch.first + slice.first;
  if (random_ != nullptr && placed_.first != first) {
    steps_.memory().write(random_ + kFirstSample * sizeof first, &first, sizeof first);
    placed_.first = first;
  }
  const double weight =
      static_cast<double>(slice.samples) / static_cast<double>(batch.whole_size());
  if (weight_ != nullptr && placed_.weight != weight) {
    steps_.memory().write(weight_, &weight, sizeof weight);
    placed_.weight = weight;
  }
}

std::optional<Status> StepsInFlight::start_slice(const PreparedStep& step, size_t number,
                                                 const Batch& batch, RunTimes* times) {
  const PreparedStep::Run& run = step.runs()[number];
  if (times != nullptr) times->feeds.begin = clock_ns();
  copy_feeds(step, run, batch);
  if (times != nullptr) times->feeds.end = clock_ns();
  place_part(run.slice, batch);
  const std::optional<Status> ended = run.part->executable->start(slots_, times);
  held_[static_cast<size_t>(slots_.feeds)] = held_of(step, batch);
  return ended;
}

/// Whether run() waits for the step, with no other step in flight. Micro-batches pass gradients on
/// to the next one. With `check_finite` the step is examined before the next one.
bool StepsInFlight::ends_in_run(const PreparedStep& step) const {
  return step.runs().size() > 1 ||
         (steps_.options().passes.check_finite && step.options().mode == Mode::train);
}

Outputs StepsInFlight::run(PreparedStep& step, const Batch& batch) {
  steps_.require_runnable();
  follow_bindings();
  const auto slot = static_cast<size_t>(slots_.outputs);
  StepTimes* times = step.recorder() ? step.recorder()->next() : nullptr;
  const uint64_t number = count_ + 1;
  begin_anew(number);
  if (ends_in_run(step) || times != nullptr) settle(number);
  finish(slot, number);
  if (!slot_with(step, batch)) free_feed_slot(number);
  if (times != nullptr) times->step.begin = clock_ns();
  Begun& begun = begun_[slot];
  begun = {.step = &step, .number = number};
  count_ = number;
  step.begin(slot);
  start(begun, batch, times);
  if (ends_in_run(step)) finish(slot, number);
  slots_.outputs ^= 1;
  if (times != nullptr) {
    times->step.end = clock_ns();
    step.recorder()->keep();
  }
  return {*this, step, slot, begun.number};
}

void StepsInFlight::start(Begun& begun, const Batch& batch, StepTimes* times) {
  begins_anew_ = true;  // until the step has started without an error
  std::optional<UserError> refused;
  try {
    run_slices(begun, batch, times, refused);
  } catch (const DeviceError&) {
    if (!refused) throw;  // else the rejection is the error to report
  }
  if (refused) throw *refused;
  begins_anew_ = false;
}

/// Waits for all steps and clears the rejection flag after a rejected or failed step, so that the
/// next step may change variables. An earlier step may have set the flag unnoticed. `for_step`: as
/// in finish().
void StepsInFlight::begin_anew(uint64_t for_step) {
  if (!begins_anew_) return;
  settle(for_step);
  steps_.memory().allow_updates();
  begins_anew_ = false;
}

/// Runs the micro-batches of a step. A single one may run asynchronously. If ranks exchange the
/// rejection flag in the last micro-batch, the remaining ones run even after a rejection: the other
/// ranks wait in that collective.
void StepsInFlight::run_slices(Begun& begun, const Batch& batch, StepTimes* times,
                               std::optional<UserError>& refused) {
  const PreparedStep& step = *begun.step;
  const bool tells = steps_.memory().at().refused != nullptr && steps_.options().passes.exchanges();
  for (size_t i = 0; i < step.runs().size(); ++i) {
    std::optional<Status> status =
        start_slice(step, i, batch, times == nullptr ? nullptr : &times->runs[i]);
    begun.slots = slots_;
    if (!status && step.runs().size() == 1) {
      begun.pending = true;
      return;
    }
    if (!status) status = step.runs()[i].part->executable->finish(slots_.outputs);
    if (!status->good() && !refused) refused = refusal_of(begun, i, *status);
    if (refused && !tells) return;
    step.gather(i, static_cast<size_t>(slots_.outputs), steps_.memory());
  }
}

/// Waits for the step in `slot`, after any step started before it. Errors are worded for the
/// caller: step `for_step`, which may not have started, or 0 for a call that runs no step.
void StepsInFlight::finish(size_t slot, uint64_t for_step) {
  Begun& begun = begun_[slot];
  if (!begun.pending) return;
  const Begun& other = begun_[1 - slot];
  if (other.pending && other.number < begun.number) finish(1 - slot, for_step);
  begun.pending = false;
  const auto heard_by = [&](const UserError& refusal, uint64_t step) {
    return heard(refusal, {.number = begun.number, .heard_by = step, .last = count_});
  };
  try {
    const auto& run = begun.step->runs().front();
    const Status status = run.part->executable->finish(static_cast<int>(slot));
    if (!status.good()) throw refusal_of(begun, 0, status);
  } catch (const UserError& refusal) {
    abandon(begun, std::current_exception(),
            std::make_exception_ptr(heard_by(refusal, begun.number + 1)));
    throw heard_by(refusal, for_step);
  } catch (...) {
    abandon(begun, std::current_exception(), std::current_exception());
    throw;
  }
}

/// The error for data rejected by run number `run` of a step. The host's feed slot still holds the
/// data.
UserError StepsInFlight::refusal_of(const Begun& begun, size_t run, const Status& status) const {
  const auto& [slice, part] = begun.step->runs()[run];
  const std::byte* slot =
      steps_.memory().at().host_slots.feeds[static_cast<size_t>(begun.slots.feeds)];
  Batch fed{.size = slice.samples, .columns = {}};
  for (const Feed& feed : part->feeds) {
    fed.columns.emplace_back(feed.name,
                             Tensor::view(feed.type.dtype, extents(feed.type.shape, slice.samples),
                                          const_cast<std::byte*>(slot) + feed.offset));
  }
  const bool went_on = begun_[begun.slots.outputs ^ 1].pending;
  return refusal(status, {.feeds = fed,
                          .first = slice.first,
                          .went_on = went_on,
                          .find_sample = steps_.options().find_sample});
}

/// Records why a step failed. A step started after it was not applied either and fails with
/// `why_later`.
void StepsInFlight::abandon(Begun& failed, const std::exception_ptr& why,
                            const std::exception_ptr& why_later) {
  failed.failure = why;
  begins_anew_ = true;
  const int slot = failed.slots.outputs ^ 1;
  Begun& later = begun_[static_cast<size_t>(slot)];
  if (!later.pending) return;
  later.pending = false;
  later.failure = why_later;
  try {
    later.step->runs().front().part->executable->finish(slot);
  } catch (const DeviceError&) {
    return;  // `why` came first and is reported
  }
}

void StepsInFlight::settle(uint64_t for_step) {
  finish(0, for_step);
  finish(1, for_step);
}

void StepsInFlight::settle_inference() {
  for (size_t slot = 0; slot < 2; ++slot) {
    const Begun& begun = begun_[slot];
    if (begun.pending && begun.step->options().mode != Mode::train) {
      finish(slot, count_ + 1);
    }
  }
}

void StepsInFlight::run_again(const PreparedStep& step, size_t last, const Batch& batch,
                              const See& see) {
  follow_bindings();
  begun_[static_cast<size_t>(slots_.outputs)] = {};  // the rerun overwrites its outputs
  bool goes_on = true;
  for (size_t i = 0; goes_on && i <= last; ++i) {
    Executable& executable = *step.runs()[i].part->executable;
    executable.watch([&](const ir::Op& op, void* const* buffers, bool done) {
      return goes_on = see(i, op, buffers, done);
    });
    check(start_slice(step, i, batch, nullptr).has_value(), "a step that is watched goes on");
  }
}

StepsInFlight::Begun& StepsInFlight::done(size_t slot, uint64_t number) {
  Begun& begun = begun_[slot];
  if (begun.number != number) {
    throw UserError(
        "outputs are read after the second step that followed theirs, which has their memory now: "
        "read them before, or keep a copy()");
  }
  finish(slot, number);
  if (begun.failure) std::rethrow_exception(begun.failure);
  return begun;
}

const std::vector<Output>& StepsInFlight::outputs(size_t slot, uint64_t number) {
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
  settle();
  for (size_t slot = 0; slot < 2; ++slot) {
    const Begun& begun = begun_[slot];
    if (begun.number == 0 || begun.failure) continue;
    for (size_t i = 0; i < begun.step->outputs(); ++i) begun.step->fetch(slot, i, steps_.memory());
  }
}

}  // namespace fluid
