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

/// A program on a device: its compiled steps, the steps in flight, and the values of its variables.
class Session {
 public:
  Session(std::unique_ptr<ir::Program> recorded, std::unique_ptr<Device> device,
          const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;

  /// Finds or compiles a step. Also compiles a startup step for variables that are new with it: the
  /// recorded ones, and the optimizer's with the first training step.
  ///
  /// Grows the arena when needed and keeps variables and outputs. A place with its own memory never
  /// holds two arenas at once. Before generating code, throws UserError when the arena would exceed
  /// the user's memory limit, and OutOfMemory when it would exceed the place's memory. When a
  /// library cannot compute an op that it claimed, code is generated for the op.
  ///
  /// After a failure the session keeps its previous variables and steps, perhaps in a larger arena.
  /// A failed GPU may prevent binding the steps again. This error is then thrown, and again by
  /// every later call that runs or prepares a step.
  PreparedStep& prepare(const Options& options);
  /// Prepares all of `steps` or none, and grows the arena at most once.
  void prepare(std::span<const Options> steps);
  /// The step prepared for this mode, batch size and set of feeds, or null.
  PreparedStep* find(Mode mode, int64_t batch, const std::set<std::string>& feeds) const;
  /// Fills variables that have no value yet. Creates the recorded variables if no step is prepared.
  /// May be called again after a failure, as may prepare().
  void initialise();
  /// Runs a prepared step on checked feeds; see StepsInFlight::run().
  OutputViews run(PreparedStep& step, const Batch& batch);
  /// Replaces the device's tuning choices by `decisions`, on which all ranks agreed. Rebinds all
  /// steps if a choice changed. Throws as prepare() does when rebinding fails.
  void adopt_tuning_record(const std::map<std::string, std::string>& decisions);

  /// Reruns the micro-batches 0 to `last` of the last training step with `see` called for each
  /// kernel; see StepsInFlight::rerun_watched(). The step restarts from `controls`, the control
  /// variables that it began with. Restores the state region afterwards, also after a failure: a
  /// step with a non-finite loss may update variables. If a GPU failure prevents this, every later
  /// call that runs or prepares a step throws.
  void rerun_watched(const PreparedStep& step, size_t last, const Batch& batch,
                     const VariableValues::Controls& controls, const StepsInFlight::See& see);

  /// The recorded times of all steps.
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
  void end_rerun(const PreparedStep& step, std::span<const std::byte> state,
                 const std::exception_ptr& why);

  StepCache steps_;
  StepsInFlight in_flight_;
  VariableValues values_;
};

}  // namespace fluid
