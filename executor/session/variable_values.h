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

/// The values of a session's variables: how they begin, and how the host reads and writes them,
/// once all steps that were begun are done.
///
/// A half copy of a parameter (passes/half_weights.h) has the parameter's value before a step runs:
/// complete() makes up for what could not be done when the parameter changed.
class VariableValues {
 public:
  VariableValues(StepCache& steps, StepsInFlight& in_flight)
      : steps_(steps), in_flight_(in_flight) {}

  /// Gives a recorded variable its value: no initialiser is compiled for one that was given before
  /// the first step is prepared, when `value` is kept, and must own its memory. Converted as by
  /// assign(), checked by the caller.
  void give(const std::string& name, const Tensor& value);
  /// Whether no startup program has to fill the variable.
  bool has_value(const std::string& name) const;
  /// Takes over what steps came with.
  void take_in(AddedSteps added);
  /// Whether the session has variables.
  bool exist() const { return exist_; }
  /// Fills new variables, with what they were given or from the seed. To be called again where it
  /// failed.
  void initialise();
  /// Before a step: seeds the random state and makes the half copies, where that is due.
  void complete();

  /// Those that have their first values, by name; copies in half precision are not among them.
  std::vector<Variable> initialised() const;
  /// A variable's value: of the CPU's a view, until the next step.
  Tensor value(const Variable& variable);
  /// Sets a variable to a value of its shape, converted to its dtype, and a parameter's half copy
  /// with it.
  void assign(const Variable& variable, const Tensor& value);
  /// Writes bytes of the state region.
  void write(std::byte* to, const void* from, int64_t bytes);
  /// Makes the half copies of parameters from them: all, or that of one.
  void refresh_halves(std::string_view parameter = {});
  /// Gives the processes that share the program rank 0's value. A call of all ranks.
  void broadcast(const Variable& variable);

  /// What a step moves on even when it is not applied, and more: all that is small, by name.
  using Controls = std::map<std::string, Tensor>;
  /// Copies them to tensors that stay from call to call, so that none is allocated.
  void copy_controls(Controls& to);
  void restore(const Controls& controls);

 private:
  StepCache& steps_;
  StepsInFlight& in_flight_;
  std::vector<PreparedStep*> fillers_;   ///< startup steps that have not run
  std::set<std::string> filled_;         ///< variables
  std::map<std::string, Tensor> given_;  ///< first values, until the variables are there
  bool exist_ = false, initialised_ = false;
  bool seed_is_due_ = false;       ///< the random state is there, and has no seed
  bool halves_are_stale_ = false;  ///< of some parameters, until a change to these is complete
};

}  // namespace fluid
