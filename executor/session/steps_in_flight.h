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

/// The steps of a session that have begun, and how they end, at once or later.
///
/// Where the place goes on with a step by itself, two are under way at once, one for each slot for
/// outputs.
/// What a step was refused for is thrown by the first call that waits for it, and says there which
/// step it was: whatever reads or writes variables or prepares steps, the second step after it, or
/// the next whose feeds come to the slot that it reads, or who asks for its outputs or those of the
/// step after it, which is then not applied either.
class StepsInFlight {
 public:
  explicit StepsInFlight(StepCache& steps) : steps_(steps) {}

  /// Runs a prepared step on checked feeds, or begins to. Throws UserError when a kernel met bad
  /// data.
  Outputs run(PreparedStep& step, const Batch& batch);
  /// Waits for all steps.
  void settle() { settle(0); }
  /// Waits, before a step that trains, for those that do not. One that is refused holds up what was
  /// begun after it, on this process alone.
  void settle_inference();
  /// Waits for all steps, and gets all outputs to the host that may yet be asked for.
  void fetch_outputs();

  /// Waits for step `number` and returns its outputs, which lie in `slot`. Throws UserError when a
  /// later step has the slot.
  const std::vector<Output>& outputs(size_t slot, uint64_t number);
  /// The same, and makes sure that the host has an output.
  void fetch(size_t slot, uint64_t number, size_t output);
  std::byte* report(size_t slot, uint64_t number);
  const std::vector<Reported>& reported_variables() const { return steps_.reported_variables(); }

  /// What tells kernels where a slice stands in the batch is to be written again.
  void forget_place() { placed_ = {}; }

  /// Who sees a slice's kernels: its number, the op, its buffers, and whether it is done; false
  /// ends it.
  using See = std::function<bool(size_t, const ir::Op&, void* const*, bool)>;
  /// Runs the slices up to number `last` of a step that has ended again, seen kernel by kernel,
  /// until `see` returns false. Its outputs are lost.
  void run_again(const PreparedStep& step, size_t last, const Batch& batch, const See& see);
  /// Waits for all steps, and lets the next one change variables although one was refused.
  void begin_anew() { begin_anew(0); }

 private:
  /// What a slot for feeds holds: a batch's id, or 0.
  struct Held {
    const PreparedStep* step = nullptr;
    uint64_t id = 0;
    bool operator==(const Held&) const = default;
  };
  /// A step that has a slot for its outputs.
  struct Begun {
    PreparedStep* step = nullptr;
    uint64_t number = 0;  ///< from 1; 0: none
    Slots slots;
    bool pending = false;        ///< nobody has waited for its end
    std::exception_ptr failure;  ///< why it was not applied
  };
  /// What place_part() has written.
  struct PlacedPart {
    std::optional<int64_t> first;
    std::optional<double> weight;
  };
  void follow_bindings();
  void copy_feeds(const PreparedStep& step, const PreparedStep::Run& run, const Batch& batch);
  static Held held_of(const PreparedStep& step, const Batch& batch);
  std::optional<int> slot_with(const PreparedStep& step, const Batch& batch) const;
  int next_feed_slot() const;
  void free_feed_slot(uint64_t for_step);
  void place_part(const SliceOfBatch& slice, const Batch& batch);
  std::optional<Status> start_slice(const PreparedStep& step, size_t number, const Batch& batch,
                                    RunTimes* times);
  void start(Begun& begun, const Batch& batch, StepTimes* times);
  void begin_anew(uint64_t for_step);
  bool ends_in_run(const PreparedStep& step) const;
  void finish(size_t slot, uint64_t for_step);
  void settle(uint64_t for_step);
  Begun& done(size_t slot, uint64_t number);
  void run_slices(Begun& begun, const Batch& batch, StepTimes* times,
                  std::optional<UserError>& refused);
  UserError refusal_of(const Begun& begun, size_t run, const Status& status) const;
  void abandon(Begun& failed, const std::exception_ptr& why, const std::exception_ptr& why_later);

  StepCache& steps_;
  std::array<Held, 2> held_;
  std::array<Begun, 2> begun_;  ///< by their slot for outputs
  uint64_t count_ = 0;          ///< of steps begun
  bool begins_anew_ = false;    ///< the next step, as the last was refused or failed
  Slots slots_;                 ///< of the next step
  uint64_t bindings_ = 0;       ///< of the steps, that what follows holds for
  PlacedPart placed_;
  std::byte* random_ = nullptr;  ///< state rng; null: the program draws no number
  std::byte* weight_ = nullptr;  ///< state part.weight
};

}  // namespace fluid
