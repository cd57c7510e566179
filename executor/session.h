#pragma once

#include <array>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "executor/device.h"
#include "executor/nonfinite.h"
#include "executor/place_machine.h"
#include "executor/prepared_step.h"
#include "executor/profile/profile.h"
#include "executor/sample_finder.h"
#include "ir/graph.h"
#include "passes/options.h"

namespace fluid {

struct SessionOptions {
  uint64_t seed = 0;
  Options passes = {};        ///< what all steps have in common
  bool prefetch = true;       ///< as many slots for feeds as the place uses; else one
  int64_t micro_batches = 1;  ///< slices that the batch of a training step is cut into
  MemoryLimit memory = {};    ///< of the arena
  std::optional<ProfileOptions> profile = {};
  SampleFinder find_sample = {};
  int feed_slots(const Target& target) const { return prefetch ? target.feed_slots() : 1; }
};

/// The variables of a program on a device, its compiled steps, and the one stretch of memory they
/// live in: [variables | slots for feeds | slots for outputs | transient].
///
/// Where the place goes on with a step by itself, two are under way at once, one for each slot for
/// outputs.
/// What a step was refused for is thrown by the first call that waits for it, and says there which
/// step it was: whatever reads or writes variables or prepares steps, the second step after it, or
/// the next whose feeds come to the slot that it reads, or who asks for its outputs or those of the
/// step after it, which is then not applied either.
class Session {
 public:
  Session(std::unique_ptr<ir::Program> recorded, std::unique_ptr<Device> device,
          const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;

  /// Compiles a step, or finds it, and what fills the variables that are new with it: those that
  /// were recorded, and the optimizer's with the first step that trains. Grows the arena when
  /// needed, keeping the variables and outputs; there are never two on a place with memory of its
  /// own. Throws, before any code is generated, when the arena would pass the memory limit:
  /// UserError, or OutOfMemory when that is all there is. Whatever fails, also as memory is taken
  /// or steps are bound to it, the session has the variables and steps that it had, perhaps in a
  /// larger arena; unless these cannot be bound again, as on a GPU that has failed: then that is
  /// thrown, and by all that would run or prepare a step from then on. What a library turns out not
  /// to compute is left to generated code.
  PreparedStep& prepare(const Options& options);
  /// The same of several, for which the arena grows once: all or none.
  void prepare(std::span<const Options> steps);
  /// The step for these, or null.
  PreparedStep* find(Mode mode, int64_t batch, const std::set<std::string>& feeds);
  bool has_step_for(Mode mode) const;
  /// The predict step that uses most of the batch's columns and needs no other, or null.
  PreparedStep* find_predict(const Batch& batch);

  /// Fills new variables, with what they were given or from the seed. To be called again where it
  /// failed, or prepare(). With nothing prepared it makes the recorded variables.
  void initialise();

  /// Gives a recorded variable its value: no initialiser is compiled for one that was given before
  /// the first step is prepared, when `value` is kept, and must own its memory. Converted as by
  /// assign(), checked by the caller.
  void give(const std::string& name, const Tensor& value);

  /// Runs a prepared step on checked feeds, or begins to. Throws UserError when a kernel met bad
  /// data.
  Outputs run(PreparedStep& step, const Batch& batch);
  /// Waits for all steps.
  void settle();
  /// Waits, before a step that trains, for those that do not. One that is refused holds up what was
  /// begun after it, on this process alone.
  void settle_inference();

  /// Of step `number`, which has the slot for its outputs: waits until it is done. Throws UserError
  /// when a later step has the slot.
  const std::vector<Output>& outputs(size_t slot, uint64_t number);
  /// The same, and makes sure that the host has an output.
  void fetch(size_t slot, uint64_t number, size_t output);
  std::byte* report(size_t slot, uint64_t number);
  const std::vector<Reported>& reported_variables() const { return reported_; }

  /// Where the training step that was last run met its first number that is not finite; "" when it
  /// met none. Changes no variable, also where it fails; where a GPU fails so that variables cannot
  /// be as they were, that is thrown by all that would run or prepare a step from then on. Needs
  /// Options::check_finite.
  std::string first_nonfinite(PreparedStep& step, const Batch& batch);

  /// The times of the steps that were recorded.
  Profile profile() const;

  /// Makes the half copies of parameters from them: all, or that of one.
  void refresh_halves(std::string_view parameter = {});

  /// The variables that have their first values, by name; copies in half precision are not among
  /// them.
  std::vector<Variable> initialised() const;
  /// The variables that were recorded, in order, as all steps have them; without their places.
  std::vector<Variable> recorded_variables() const;

  const ir::Program& recorded() const { return *recorded_; }
  const Variables& variables() const { return variables_; }
  /// A variable's value: of the CPU's a view, until the next step.
  Tensor value(const Variable& variable);
  /// Sets a variable to a value of its shape, converted to its dtype, and a parameter's half copy
  /// (passes/half_copies.h) with it.
  void assign(const Variable& variable, const Tensor& value);
  /// From now on what its device chose is as processes that work together have decided. Where steps
  /// cannot be bound for that, as in prepare().
  void take(const std::map<std::string, std::string>& decisions);
  /// Gives the processes that share the program rank 0's value. A call of all ranks.
  void broadcast(const Variable& variable);
  const Device& device() const { return *device_; }
  const PlaceMemory& memory() const { return *memory_; }
  double passes_ms() const { return passes_ms_; }

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
  void add(std::span<const Options> wanted);
  std::unique_ptr<Part> compile(const Options& options, int64_t batch, const ir::Program& program);
  Part* part_of(const SliceOfBatch& slice, const Options& step, const ir::Program& program,
                std::vector<std::unique_ptr<Part>>& compiled);
  void check_memory(const Regions& regions, int64_t batch) const;
  Regions regions_with(const MemoryPlan& plan) const;
  Startup startup(const Variables& variables,
                  const std::vector<std::unique_ptr<Part>>& compiled) const;
  std::unique_ptr<PreparedStep> compile_step(const Options& options, const ir::Program& program,
                                             std::vector<std::unique_ptr<Part>>& compiled);
  void adopt(std::vector<std::unique_ptr<Part>> parts,
             std::vector<std::unique_ptr<PreparedStep>> steps, Variables variables, bool moved);
  void grow(const Regions& regions);
  using Change = std::function<void()>;
  void or_bind_again(
      const Change& change, const Change& undo = [] {});
  bool binds_again();
  std::byte* address_of(const Variable& variable) const;
  /// Null when the programs have no such variable.
  std::byte* address_of(std::string_view name) const;
  void fill_in();
  void bind(size_t first_part, size_t first_step);
  void copy_feeds(const PreparedStep& step, const PreparedStep::Run& run, const Batch& batch);
  static Held held_of(const PreparedStep& step, const Batch& batch);
  std::optional<int> slot_with(const PreparedStep& step, const Batch& batch) const;
  int next_feed_slot() const;
  void free_feed_slot(uint64_t for_step);
  using Controls = std::map<std::string, Tensor>;
  void copy_controls(Controls& to);
  void restore(const Controls& controls);
  std::optional<Status> start_slice(const PreparedStep& step, size_t number, const Batch& batch,
                                    RunTimes* times);
  void start(Begun& begun, const Batch& batch, StepTimes* times);
  void begin_anew(uint64_t for_step);
  bool runs_alone(const PreparedStep& step, bool timed) const;
  bool keeps_controls(const PreparedStep& step) const;
  void finish(size_t slot, uint64_t for_step);
  void settle(uint64_t for_step);
  Begun& done(size_t slot, uint64_t number);
  void run_slices(Begun& begun, const Batch& batch, StepTimes* times,
                  std::optional<UserError>& refused);
  UserError refusal_of(const Begun& begun, size_t run, const Status& status) const;
  void abandon(Begun& failed, const std::exception_ptr& why, const std::exception_ptr& why_later);
  void fetch_outputs();
  void watch_slices(const PreparedStep& step, size_t last, const Batch& batch,
                    const std::function<bool(size_t, const ir::Op&, void* const*, bool)>& see);
  void end_watch(const PreparedStep& step, std::span<const std::byte> state,
                 const std::exception_ptr& why);
  Device& searcher();
  std::string bad_source(const PreparedStep& step, const Batch& batch);
  std::string bad_within(const PreparedStep& step, const Batch& batch);
  std::string bad_kernel(const PreparedStep& step, const Batch& batch);
  void place_part(const SliceOfBatch& slice, const Batch& batch);
  void write_state(std::byte* to, const void* from, int64_t bytes);

  std::unique_ptr<ir::Program> recorded_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Device> searcher_;  ///< null: not yet asked for, or device_ is the host's
  SessionOptions options_;
  Variables variables_;
  std::shared_ptr<PlaceMemory> memory_;  ///< shared with outputs' views; goes after who is bound
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<std::unique_ptr<PreparedStep>> steps_;
  std::array<Held, 2> held_;
  std::array<Begun, 2> begun_;  ///< by their slot for outputs
  uint64_t steps_begun_ = 0;
  std::exception_ptr broken_;  ///< why no step runs any more
  bool begins_anew_ = false;   ///< the next step, as the last was refused or failed
  PlacedPart placed_;
  std::vector<Reported> reported_;
  Controls before_;              ///< counters and the like, as the last training step found them
  Slots slots_;                  ///< of the next step
  std::byte* random_ = nullptr;  ///< state rng; null: the program draws no number
  std::byte* weight_ = nullptr;  ///< state part.weight
  std::vector<PreparedStep*> fillers_;   ///< steps that fill variables, and have not run
  std::set<std::string> filled_;         ///< variables
  std::map<std::string, Tensor> given_;  ///< first values of variables, until they are there
  bool made_ = false;                    ///< the variables
  bool initialised_ = false, seeded_ = false;
  bool halves_are_stale_ = false;  ///< of some parameters, until a change to these is complete
  double passes_ms_ = 0;
};

}  // namespace fluid
