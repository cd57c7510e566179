#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "executor/session/precomputed_weights.h"
#include "executor/session/step_cache.h"
#include "executor/session/steps_in_flight.h"
#include "ir/tensor.h"

namespace fluid {

/// Initialises the variables of a session, and reads and writes their values from the host. Every
/// access waits for the steps in flight.
///
/// A half-precision weight (passes/half_weights.h) must equal its parameter when a step runs.
/// prepare_for_step() refreshes stale half-precision weights.
class VariableValues {
 public:
  VariableValues(StepCache& steps, StepsInFlight& in_flight)
      : steps_(steps), in_flight_(in_flight), weights_(steps, in_flight) {}

  /// Sets a recorded variable to `value`, converted as by assign(). The caller must check the
  /// shape. Before the first step is prepared, stores `value` as the initial value, so that no
  /// initialiser is compiled. In this case `value` must own its memory.
  void set_value(const std::string& name, const Tensor& value);
  /// Whether the variable already has a value, so that startup steps need not initialise it.
  bool has_value(const std::string& name) const;
  /// Registers the new variables of added steps.
  void register_variables(AddedSteps added);
  /// Whether the session has allocated its variables.
  bool are_allocated() const { return allocated_; }
  /// Initialises new variables with the values passed to set_value(), or with their initialisers.
  /// May be called again after a failure.
  void initialise();
  /// Called before each step. Seeds the random state and refreshes half-precision weights if
  /// necessary.
  void prepare_for_step();
  /// Called before each predict step. Refreshes stale precomputed weights.
  void prepare_for_predict() { weights_.refresh(); }
  /// Must be called before each step that writes variables.
  void mark_variables_changed() { weights_.mark_stale(); }
  /// Assigns the initial value of a variable whose initialiser is "array", which the startup step
  /// cannot compute.
  void assign_array(const std::string& name);

  /// Returns the initialised variables except half-precision weights, sorted by name.
  std::vector<Variable> initialised_variables() const;
  /// Returns the value of a variable. On the CPU the tensor is a view, valid until the next step.
  Tensor value(const Variable& variable);
  /// Converts `value` to the dtype of `variable` and assigns it. `value` must have the shape of
  /// `variable`. Also refreshes the half-precision weight of a parameter.
  void assign(const Variable& variable, const Tensor& value);
  /// Copies `bytes` bytes from host address `from` to address `to` in the state region.
  void write(std::byte* to, const void* from, int64_t bytes);
  /// Recomputes the half-precision weight of `parameter` from the parameter. If `parameter` is
  /// empty, recomputes all half-precision weights.
  void refresh_half_weights(std::string_view parameter = {});
  /// Collective. Broadcasts `variable` from rank 0.
  void broadcast(const Variable& variable);

  /// Values of the control variables, such as counters and the loss scale, by name. A failed step
  /// may still change some of them.
  using ControlValues = std::map<std::string, Tensor>;
  /// Copies the control variables to `to`. Later calls with the same map reuse its tensors and
  /// allocate nothing.
  void save_control_variables(ControlValues& to);
  void restore_control_variables(const ControlValues& controls);

 private:
  void set_deferred_values();
  void set(const Variable& variable, const Tensor& value);
  void copy_to_state(std::byte* to, const void* from, int64_t bytes);

  StepCache& steps_;
  StepsInFlight& in_flight_;
  PrecomputedWeights weights_;
  std::vector<PreparedStep*> startup_steps_;  ///< startup steps that have not run yet
  std::set<std::string> initialised_names_;   ///< names of initialised variables
  /// Variable name -> value passed to set_value() before the variables were allocated.
  std::map<std::string, Tensor> deferred_values_;
  bool allocated_ = false, initialised_ = false;
  bool needs_seed_ = false;  ///< whether the random state must still be seeded
  /// Whether the half-precision copy of a parameter may differ from the parameter.
  bool half_weights_are_stale_ = false;
};

}  // namespace fluid
