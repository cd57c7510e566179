#pragma once

#include <memory>
#include <string>

#include "ir/graph.h"

namespace fluid {

struct Unlist {
  void operator()(ir::Program* program) const;
};
/// A program that recorded_program() considers while it lives.
using LivingProgram = std::unique_ptr<ir::Program, Unlist>;
LivingProgram list_program(std::unique_ptr<ir::Program> program);

/// Makes `program` the recorded program of this thread while the guard lives.
class RecordedProgram {
 public:
  explicit RecordedProgram(ir::Program& program);
  ~RecordedProgram();
  RecordedProgram(const RecordedProgram&) = delete;
};

/// The program of the innermost RecordedProgram of this thread; without one, the only living
/// program that this thread listed. Throws UserError, naming parameter `name`, when there is none
/// or several.
ir::Program& recorded_program(const std::string& name, const Loc& loc);

}  // namespace fluid
