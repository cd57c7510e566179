#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "executor/session/step_cache.h"
#include "executor/session/steps_in_flight.h"
#include "ir/tensor.h"

namespace fluid {

/// The values of a session's variables: initialises them, and lets the host read and write them.
/// All accesses wait for the steps in flight.
///
/// A half-precision weight (passes/half_weights.h) must equal its parameter before a step runs.
/// complete() refreshes the ones that are stale.
class VariableValues {
 public:
  VariableValues(StepCache& steps, StepsInFlight& in_flight)
      : steps_(steps), in_flight_(in_flight) {}

  /// Sets a recorded variable to `value`, which the caller has checked, converted as by assign(). A
  /// value set before the first step is prepared needs no compiled initialiser; it is kept until
  /// then and must own its memory.
  void give(const std::string& name, const Tensor& value);
  /// Whether the variable needs no startup step.
  bool has_value(const std::string& name) const;
  /// Registers the variables of new steps.
  void register_variables(AddedSteps added);
  /// Whether the session has created its variables.
  bool exist() const { return exist_; }
  /// Fills new variables with the values set by give(), or by their initialisers. May be called
  /// again after a failure.
  void initialise();
  /// Before a step: seeds the random state and refreshes half-precision weights, if due.
  void complete();

  /// The variables that have their initial values, sorted by name, without half-precision weights.
  std::vector<Variable> initialised() const;
  /// The value of a variable. On the CPU it is a view, valid until the next step.
  Tensor value(const Variable& variable);
  /// Sets a variable to a value of its shape, converted to its dtype. Also refreshes the
  /// half-precision weight of a parameter.
  void assign(const Variable& variable, const Tensor& value);
  /// Writes `bytes` into the state region.
  void write(std::byte* to, const void* from, int64_t bytes);
  /// Recomputes the half-precision weights from their parameters: all, or the one of `parameter`.
  void refresh_half_weights(std::string_view parameter = {});
  /// Collective. Broadcasts rank 0's value of `variable`.
  void broadcast(const Variable& variable);

  /// Values of the control variables by name, such as counters and the loss scale. A step changes
  /// some of them even if it is not applied.
  using Controls = std::map<std::string, Tensor>;
  /// Copies the control variables into tensors that later calls reuse without allocating.
  void copy_controls(Controls& to);
  void restore(const Controls& controls);

 private:
  StepCache& steps_;
  StepsInFlight& in_flight_;
  std::vector<PreparedStep*> fillers_;   ///< startup steps that have not run
  std::set<std::string> filled_;         ///< names of variables that have their initial values
  std::map<std::string, Tensor> given_;  ///< initial values set before the variables exist
  bool exist_ = false, initialised_ = false;
  bool seed_is_due_ = false;         ///< the random state exists but has no seed
  bool half_weights_stale_ = false;  ///< some half-precision weights differ from their parameters
};

}  // namespace fluid
