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

/// A program loaded on a device: its compiled steps, the steps in flight, and the values of its
/// variables.
class Session {
 public:
  Session(std::unique_ptr<ir::Program> recorded, std::unique_ptr<Device> device,
          const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;

  /// Finds or compiles a step. Also compiles a startup step for the variables that this step adds.
  ///
  /// Grows the arena if needed; variables and outputs keep their values. A device with its own
  /// memory never holds two arenas at once. Throws before code generation if the arena would be too
  /// large: UserError above the user's memory limit, OutOfMemory above the place's memory. If a
  /// library cannot compute an op, code is generated for the op.
  ///
  /// After a failure, the session keeps its previous variables and steps, possibly in a larger
  /// arena. If a GPU error prevents the steps from being bound again, this call and every later
  /// call that runs or prepares a step throw the error.
  PreparedStep& prepare(const Options& options);
  /// Prepares all of `steps` or none. Grows the arena at most once.
  void prepare(std::span<const Options> steps);
  /// Returns the prepared step for this mode, recipe, batch size, length and set of feeds, or null.
  /// `global_batch`: as for StepCache::find().
  PreparedStep* find(Mode mode, const std::string& recipe, int64_t batch, int64_t length,
                     const std::set<std::string>& feeds, int64_t global_batch = 0) const;
  /// Initialises variables that have no value yet. Creates the recorded variables if no step is
  /// prepared. After a failure, this function and prepare() may be called again.
  void initialise();
  /// Runs a prepared step on feeds that check_feeds() accepted; see StepsInFlight::run().
  OutputViews run(PreparedStep& step, const Batch& batch);
  /// Replaces the device's tuning choices by those in `record`, which is equal on all ranks.
  /// Rebinds all steps if a choice changed. Throws as prepare() does if rebinding fails.
  void adopt_tuning_record(const std::map<std::string, std::string>& record);

  /// Reruns micro-batches 0 to `last_micro_batch` of the last training step and calls `observer`
  /// for each kernel; see StepsInFlight::rerun_observed(). `controls`: values of the control
  /// variables before this training step. Restores the state region afterwards, also after a
  /// failure, because the rerun may update variables. If a GPU failure prevents restoring, every
  /// later call that runs or prepares a step throws.
  void rerun_observed(const PreparedStep& step, size_t last_micro_batch, const Batch& batch,
                      const VariableValues::ControlValues& controls,
                      const StepsInFlight::RerunObserver& observer);

  /// Returns the recorded times of all steps.
  Profile profile() const;

  const StepCache& steps() const { return steps_; }
  StepsInFlight& in_flight() { return in_flight_; }
  VariableValues& values() { return values_; }
  const ir::Program& recorded_program() const { return steps_.recorded_program(); }
  const Variables& variables() const { return steps_.variables(); }
  const PlaceMemory& memory() const { return steps_.memory(); }
  const Device& device() const { return steps_.device(); }

 private:
  void try_prepare(std::span<const Options> wanted);
  void restore_after_rerun(const PreparedStep& step, std::span<const std::byte> state,
                           const std::exception_ptr& why);

  StepCache steps_;
  StepsInFlight in_flight_;
  VariableValues values_;
};

}  // namespace fluid
