#pragma once

#include <memory>
#include <string>

#include "ir/graph.h"

namespace fluid {

/// Deleter of RegisteredProgram: unregisters the program and deletes it.
struct UnregisterProgram {
  void operator()(ir::Program* program) const;
};
/// Owns a program, which current_program() can return until the RegisteredProgram is destroyed.
using RegisteredProgram = std::unique_ptr<ir::Program, UnregisterProgram>;
/// Registers `program` for current_program() on the calling thread.
RegisteredProgram register_program(std::unique_ptr<ir::Program> program);

/// RAII guard: current_program() on this thread returns `program` during the guard's lifetime.
class CurrentProgramGuard {
 public:
  explicit CurrentProgramGuard(ir::Program& program);
  ~CurrentProgramGuard();
  CurrentProgramGuard(const CurrentProgramGuard&) = delete;
};

/// Returns the program to which parameter() adds a parameter: the program of the innermost
/// CurrentProgramGuard of this thread, or else the only program that this thread registered and
/// that still exists. Throws UserError, naming the parameter, when no program or several qualify.
ir::Program& current_program(const std::string& parameter_name, const Loc& loc);

}  // namespace fluid
