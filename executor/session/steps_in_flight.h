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
/// If the place runs steps asynchronously, up to two steps are in flight at once, one per output
/// slot. An error of step n is thrown by the first call that waits for step n; the message says
/// which step failed. The calls that wait for step n are: reading outputs of step n or n + 1,
/// accessing variables, preparing a step, starting step n + 2, or overwriting the feed slot of step
/// n. After an error in step n, step n + 1 is not applied either.
class StepsInFlight {
 public:
  explicit StepsInFlight(StepCache& steps) : steps_(steps) {}

  /// Runs a prepared step on feeds that check_feeds() accepted, possibly asynchronously. Throws
  /// UserError if a kernel rejects the data.
  OutputViews run(PreparedStep& step, const Batch& batch);
  /// Runs a prepared step without feeds and outputs, synchronously. The next step uses the same
  /// output slot, so that the outputs of the previous step stay valid.
  void run_without_outputs(PreparedStep& step);
  /// Waits for all steps in flight. Throws the error of a failed step.
  void wait_until_complete() { finish_both_slots(0); }
  /// Waits for all eval and predict steps in flight. Must precede a training step. Otherwise a
  /// rejected inference step could set the rejection flag of this rank alone, and only this rank
  /// would skip the update.
  void wait_for_inference();
  /// Waits for all steps in flight, and copies all readable outputs to the host.
  void fetch_outputs();

  /// Waits for step `step_number`, which uses output slot `slot`, and returns its outputs. Throws
  /// UserError if a later step has reused the slot.
  const std::vector<OutputView>& outputs(size_t slot, uint64_t step_number);
  /// Waits for step `step_number` and copies output `output` to the host.
  void fetch_output(size_t slot, uint64_t step_number, size_t output);
  /// Waits for step `step_number` and returns the address of its StepReport.
  std::byte* step_report(size_t slot, uint64_t step_number);

  /// Marks the batch position on the device as unknown, so that the next step writes it.
  void invalidate_batch_position() { written_position_ = {}; }

  /// Callback that is called before and after each kernel of a rerun. Arguments: index of the
  /// micro-batch, op, buffers, and whether the kernel has run. Returning false ends the rerun.
  using RerunObserver = std::function<bool(size_t, const ir::Op&, void* const*, bool)>;
  /// Reruns micro-batches 0 to `last_micro_batch` of a completed step and calls `observer` for each
  /// kernel. Discards the outputs of the step.
  void rerun_observed(const PreparedStep& step, size_t last_micro_batch, const Batch& batch,
                      const RerunObserver& observer);
  /// Must be called after a rejected or failed step. Waits for all steps in flight and clears the
  /// rejection flag, so that later steps can update variables.
  void clear_rejection() { clear_rejection(0); }

 private:
  /// Content of a feed slot: the batch with id `id`, converted for `step`. If `id` is 0, the slot
  /// holds no batch that can be reused.
  struct FeedSlotContent {
    const PreparedStep* step = nullptr;
    uint64_t id = 0;
    bool operator==(const FeedSlotContent&) const = default;
  };
  /// The step that used an output slot last. May already be complete.
  struct InFlightStep {
    PreparedStep* step = nullptr;
    uint64_t number = 0;  ///< step number, from 1; 0: no step has used the slot
    Slots slots;
    bool pending = false;        ///< started asynchronously, and not finished yet
    std::exception_ptr failure;  ///< the error of the step; null if there was none
  };
  /// The last values written to the device: index of a micro-batch's first sample in the global
  /// batch, and weight of the micro-batch's loss. nullopt: unknown.
  struct BatchPosition {
    std::optional<int64_t> first;
    std::optional<double> weight;
  };
  void refresh_bindings();
  void copy_feeds(const PreparedStep& step, const PreparedStep::Run& run, const Batch& batch);
  static FeedSlotContent feed_slot_content(const PreparedStep& step, const Batch& batch);
  std::optional<int> find_feed_slot(const PreparedStep& step, const Batch& batch) const;
  int next_feed_slot() const;
  void wait_for_feed_slot(uint64_t next_step);
  void write_batch_position(const MicroBatch& micro_batch, const Batch& batch);
  std::optional<StepStatus> start_micro_batch(const PreparedStep& step, size_t index,
                                              const Batch& batch, RunTimes* times);
  void start_step(InFlightStep& in_flight, const Batch& batch, StepTimes* times);
  void clear_rejection(uint64_t next_step);
  bool is_synchronous(const PreparedStep& step) const;
  void finish_step(size_t slot, uint64_t next_step);
  void finish_both_slots(uint64_t next_step);
  InFlightStep& completed_step(size_t slot, uint64_t step_number);
  void run_micro_batches(InFlightStep& in_flight, const Batch& batch, StepTimes* times,
                         std::optional<UserError>& rejection);
  UserError make_rejection_error(const InFlightStep& in_flight, size_t run,
                                 const StepStatus& status) const;
  void record_failure(InFlightStep& failed, const std::exception_ptr& why,
                      const std::exception_ptr& why_later);

  StepCache& steps_;
  std::array<FeedSlotContent, 2> feed_slot_contents_;
  std::array<InFlightStep, 2> in_flight_;  ///< indexed by output slot
  uint64_t steps_started_ = 0;
  /// Whether the last step was rejected or failed, so that clear_rejection() must precede the next
  /// step.
  bool rejection_pending_ = false;
  Slots slots_;                 ///< slots that the next step will use
  uint64_t seen_bindings_ = 0;  ///< StepCache::num_bindings() when addresses were cached
  BatchPosition written_position_;
  /// Address of the variable `rng`; null if the program draws no random numbers.
  std::byte* random_state_ = nullptr;
  /// Address of the variable `part.first`; null if the program has no such variable.
  std::byte* first_sample_index_ = nullptr;
  /// Address of the variable `part.weight`; null if the program has no such variable.
  std::byte* partial_loss_weight_ = nullptr;
};

}  // namespace fluid
