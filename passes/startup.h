#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// A variable; its attributes select the initialiser (see record_initializer()).
struct NewVariable {
  std::string name;
  Type type;
  Attrs attrs;
  Loc loc;
};

/// The variables that `graph` declares, in order, without the random state.
std::vector<NewVariable> new_variables(const ir::Graph& graph);

/// The startup program: initialises `variables`, keyed by the seed in state "rng". It holds
/// recorded ops, so startup_pipeline() must run on it. Throws UserError as record_initializer()
/// does.
std::unique_ptr<ir::Program> startup_program(const std::string& name,
                                             const std::vector<NewVariable>& variables);

}  // namespace fluid
