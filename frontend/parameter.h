#pragma once

#include <string>

#include "frontend/init.h"
#include "ir/graph.h"

namespace fluid {

/// Options of a parameter. They are attributes of its `param` op, and saved with the program.
struct ParameterOptions {
  DType dtype = f32;
  bool trainable = true;     ///< false: no gradient, no optimizer state and no update
  double lr_scale = 1;       ///< multiplies the learning rate for this parameter; >= 0
  bool weight_decay = true;  ///< false: the optimizer's weight decay skips this parameter
};

/// Adds a parameter to the program of the innermost living Scope of this thread; without a Scope,
/// to the only living Program that this thread made. Throws UserError when there is none, or when
/// there are several to choose from: Program::parameter() names the program. The current scope
/// prefixes the parameter's name.
Value parameter(const std::string& name, const Shape& shape, const Init& init,
                const ParameterOptions& options = {}, const Loc& loc = Loc::here());

/// Adds a parameter to the graph that a layer records into.
Value record_parameter(ir::Graph& graph, const std::string& name, const Shape& shape,
                       const Init& init, const ParameterOptions& options, const Loc& loc);

}  // namespace fluid
