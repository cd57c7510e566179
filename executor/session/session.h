#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "executor/profile/profile.h"
#include "executor/session/session_options.h"
#include "executor/session/step_cache.h"
#include "executor/session/steps_in_flight.h"
#include "executor/session/variable_values.h"
#include "ir/graph.h"

namespace fluid {

/// A program on a device: its compiled steps, those of them that are under way, and the values of
/// its variables.
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
  /// Prepares all of these steps or none, and grows the arena once.
  void prepare(std::span<const Options> steps);
  /// The step for these, or null.
  PreparedStep* find(Mode mode, int64_t batch, const std::set<std::string>& feeds) const;
  /// Fills new variables. To be called again where it failed, or prepare(). With nothing prepared
  /// it makes the recorded variables.
  void initialise();
  /// Runs a prepared step on checked feeds, or begins to, as StepsInFlight::run().
  Outputs run(PreparedStep& step, const Batch& batch);
  /// From now on what its device chose is as processes that work together have decided. Where steps
  /// cannot be bound for that, as in prepare().
  void take(const std::map<std::string, std::string>& decisions);

  /// Runs the slices up to number `last` of the training step that was run last again, from the
  /// controls that it began with, seen as StepsInFlight::run_again() says, and leaves the state as
  /// it was, also where that fails: a step may be applied although its loss is not finite. Where a
  /// GPU fails so that the state cannot be as it was, that is thrown by all that would run or
  /// prepare a step from then on.
  void run_again(const PreparedStep& step, size_t last, const Batch& batch,
                 const VariableValues::Controls& controls, const StepsInFlight::See& see);

  /// The times of the steps that were recorded.
  Profile profile() const;

  const StepCache& steps() const { return steps_; }
  StepsInFlight& in_flight() { return in_flight_; }
  VariableValues& values() { return values_; }
  const ir::Program& recorded() const { return steps_.recorded(); }
  const Variables& variables() const { return steps_.variables(); }
  const PlaceMemory& memory() const { return steps_.memory(); }
  const Device& device() const { return steps_.device(); }

 private:
  void add(std::span<const Options> wanted);
  void end_run_again(const PreparedStep& step, std::span<const std::byte> state,
                     const std::exception_ptr& why);

  StepCache steps_;
  StepsInFlight in_flight_;
  VariableValues values_;
};

}  // namespace fluid
