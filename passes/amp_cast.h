#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/options.h"

namespace fluid {

struct AmpReport {
  /// What mixed precision chose for an op that reads floats.
  struct Choice {
    const ir::Op* op = nullptr;
    DType dtype = DType::f32;
    std::string reason;
  };
  std::vector<Choice> ops;   ///< in the order of the graph
  std::vector<Value> casts;  ///< inserted
};

/// Chooses a precision for every op of a recorded graph and casts what it reads.
AmpReport cast_for_amp(ir::Graph& graph, const AmpOptions& options);

/// Throws UserError when a name of the options' lists is neither an op nor a layer of `recorded`,
/// or is in both lists.
void check_amp_names(const ir::Graph& recorded, const AmpOptions& options);

}  // namespace fluid
