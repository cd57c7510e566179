#pragma once

#include <memory>
#include <string>

#include "ir/graph.h"

namespace fluid {

/// Deleter of RegisteredProgram: unregisters the program and deletes it.
struct UnregisterProgram {
  void operator()(ir::Program* program) const;
};
/// Owns a registered program. Destroying the program unregisters it.
using RegisteredProgram = std::unique_ptr<ir::Program, UnregisterProgram>;
/// Makes `program` available to current_program() on the calling thread.
RegisteredProgram register_program(std::unique_ptr<ir::Program> program);

/// RAII guard: current_program() on this thread returns `program` during the guard's lifetime.
class CurrentProgramGuard {
 public:
  explicit CurrentProgramGuard(ir::Program& program);
  ~CurrentProgramGuard();
  CurrentProgramGuard(const CurrentProgramGuard&) = delete;
};

/// Returns the program to which parameter() adds parameters: the program of this thread's innermost
/// CurrentProgramGuard. Without a guard, returns the only existing program that this thread
/// registered. Throws UserError naming the parameter if there is no such program or more than one.
ir::Program& current_program(const std::string& parameter_name, const Loc& loc);

}  // namespace fluid
