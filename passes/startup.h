#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// A variable, and by its attributes how it begins: see record_initializer().
struct NewVariable {
  std::string name;
  Type type;
  Attrs attrs;
  Loc loc;
};

/// The variables that `graph` declares, in order, but for the random state.
std::vector<NewVariable> new_variables(const ir::Graph& graph);

/// The startup program: fills `variables` by their initialisers, keyed by the seed in state rng.
/// It has the ops that users record, so that startup_pipeline() has to run. Throws UserError as
/// record_initializer() does.
std::unique_ptr<ir::Program> startup_program(const std::string& name,
                                             const std::vector<NewVariable>& variables);

}  // namespace fluid
