#pragma once

#include <string>

#include "frontend/init.h"
#include "ir/graph.h"

namespace fluid {

/// Options of a parameter. Recorded as attributes of the `param` op and saved with the program.
struct ParameterOptions {
  DType dtype = f32;
  bool trainable = true;     ///< false: frozen; no gradient, optimizer state or update
  double lr_scale = 1;       ///< multiplies the learning rate for this parameter; >= 0
  bool weight_decay = true;  ///< false: no weight decay for this parameter
  /// true: sparse gradient, like torch.nn.Embedding(sparse=True). Requires a table [V, D] that only
  /// one op reads: embedding, embedding_bag, or gather along axis 0. The gradient holds only the
  /// rows that a step reads. The optimizer updates only these rows and their moments (lazy update).
  /// The cost of a step does not depend on V.
  bool sparse = false;
  /// L1 and L2 penalty: minimize() adds l1 sum(|p|) + l2 sum(p^2) to the loss; >= 0.
  double l1 = 0, l2 = 0;
  /// Maximum L2 norm of the weights into each output; 0: no limit. After each update, scales larger
  /// weights down to this norm, like torch.renorm. An output is a column of a matrix [in, out], and
  /// filter i of a convolution [out, in, ...]. For a vector, limits the norm of the whole vector.
  double max_norm = 0;
};

/// Adds a parameter to the program of this thread's innermost Scope. Without a Scope, adds it to
/// the only existing Program that this thread created. Throws UserError when there is no such
/// program or more than one; use Program::parameter() then. The name of the current scope is
/// prepended to `name`.
Value parameter(const std::string& name, const Shape& shape, const Init& init,
                const ParameterOptions& options = {}, const Loc& loc = Loc::here());

/// Adds a parameter to `graph`. The name of the current scope of the graph is prepended to `name`.
Value record_parameter(ir::Graph& graph, const std::string& name, const Shape& shape,
                       const Init& init, const ParameterOptions& options, const Loc& loc);

}  // namespace fluid
