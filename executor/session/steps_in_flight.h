#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <vector>

#include "executor/session/outputs.h"
#include "executor/session/step_cache.h"
#include "ir/error.h"

namespace fluid {

/// Starts the steps of a session and collects their results.
///
/// On a place with asynchronous steps, two are in flight at once, one per output slot. The first
/// call that waits for step n throws its error, with n's relative position in the message. Such
/// calls read the outputs of step n or n + 1, access variables, prepare a step, start step n + 2,
/// or overwrite the feed slot of step n. Step n + 1 is then not applied either.
class StepsInFlight {
 public:
  explicit StepsInFlight(StepCache& steps) : steps_(steps) {}

  /// Runs a prepared step on checked feeds; the step may be asynchronous. Throws UserError when a
  /// kernel rejects the data.
  OutputViews run(PreparedStep& step, const Batch& batch);
  /// Waits for all steps. Throws their errors.
  void wait_until_complete() { wait_until_complete(0); }
  /// Waits for all eval and predict steps. Must precede a training step. A rejected inference step
  /// sets the rejection flag on this rank alone, so only this rank would skip the training step's
  /// update.
  void wait_for_inference();
  /// Waits for all steps, and copies all readable outputs to the host.
  void fetch_outputs();

  /// Waits for step `number`, whose outputs lie in `slot`, and returns them. Throws UserError when
  /// a later step has reused the slot.
  const std::vector<OutputView>& outputs(size_t slot, uint64_t number);
  /// Waits for step `number` and copies its output `output` to the host.
  void fetch(size_t slot, uint64_t number, size_t output);
  /// Waits for step `number` and returns the address of its report (step_report.h).
  std::byte* report(size_t slot, uint64_t number);
  const std::vector<Reported>& reported_variables() const { return steps_.reported_variables(); }

  /// Forgets which sample position and weight the place holds, so that the next step writes them
  /// again.
  void invalidate_batch_position() { placed_ = {}; }

  /// Called for each kernel of a rerun: number of the micro-batch, op, buffers, and whether the
  /// kernel has run. Returning false ends the rerun.
  using See = std::function<bool(size_t, const ir::Op&, void* const*, bool)>;
  /// Reruns the micro-batches 0 to `last` of a completed step and calls `see` for each kernel.
  /// Discards the step's outputs.
  void rerun_watched(const PreparedStep& step, size_t last, const Batch& batch, const See& see);
  /// Waits for all steps, and lets the next one change variables after a rejection or failure.
  void clear_rejection() { clear_rejection(0); }

 private:
  /// Content of a feed slot: the id of a batch prepared for `step`, or 0.
  struct Held {
    const PreparedStep* step = nullptr;
    uint64_t id = 0;
    bool operator==(const Held&) const = default;
  };
  /// The step that owns an output slot.
  struct InFlightStep {
    PreparedStep* step = nullptr;
    uint64_t number = 0;  ///< from 1; 0: no step
    Slots slots;
    bool pending = false;        ///< asynchronous and not yet waited for
    std::exception_ptr failure;  ///< why the step was not applied
  };
  /// Values that write_batch_position() wrote last.
  struct BatchPosition {
    std::optional<int64_t> first;
    std::optional<double> weight;
  };
  void refresh_bindings();
  void copy_feeds(const PreparedStep& step, const PreparedStep::Run& run, const Batch& batch);
  static Held feed_slot_content(const PreparedStep& step, const Batch& batch);
  std::optional<int> slot_with(const PreparedStep& step, const Batch& batch) const;
  int next_feed_slot() const;
  void free_feed_slot(uint64_t for_step);
  void write_batch_position(const MicroBatch& slice, const Batch& batch);
  std::optional<Status> start_micro_batch(const PreparedStep& step, size_t number,
                                          const Batch& batch, RunTimes* times);
  void start(InFlightStep& in_flight, const Batch& batch, StepTimes* times);
  void clear_rejection(uint64_t for_step);
  bool is_synchronous(const PreparedStep& step) const;
  void finish(size_t slot, uint64_t for_step);
  void wait_until_complete(uint64_t for_step);
  InFlightStep& done(size_t slot, uint64_t number);
  void run_micro_batches(InFlightStep& in_flight, const Batch& batch, StepTimes* times,
                         std::optional<UserError>& refused);
  UserError rejection_of(const InFlightStep& in_flight, size_t run, const Status& status) const;
  void abandon(InFlightStep& failed, const std::exception_ptr& why,
               const std::exception_ptr& why_later);

  StepCache& steps_;
  std::array<Held, 2> held_;
  std::array<InFlightStep, 2> in_flight_;  ///< by output slot
  uint64_t count_ = 0;                     ///< number of steps started
  /// The last step was rejected or failed: call clear_rejection() before the next.
  bool rejection_pending_ = false;
  Slots slots_;            ///< slots of the next step
  uint64_t bindings_ = 0;  ///< StepCache::bindings() for which the cached members are valid
  BatchPosition placed_;
  /// Address of state rng; null: the program draws no random numbers.
  std::byte* random_ = nullptr;
  std::byte* weight_ = nullptr;  ///< address of state part.weight
};

}  // namespace fluid
