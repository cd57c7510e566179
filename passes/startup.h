#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Declaration of a variable (parameter or state). Its attributes select the initialiser (see
/// record_initializer()).
struct VariableDecl {
  std::string name;
  Type type;
  Attrs attrs;
  Loc loc;
};

/// The variables that `graph` declares, in graph order, except the random state "rng".
std::vector<VariableDecl> declared_variables(const ir::Graph& graph);

/// The startup program, which initialises `variables`. Random initialisers use the seed in state
/// "rng". The caller must run the passes of startup_pipeline(). Throws the UserErrors of
/// record_initializer().
std::unique_ptr<ir::Program> startup_program(const std::string& name,
                                             const std::vector<VariableDecl>& variables);

}  // namespace fluid
