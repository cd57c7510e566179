#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/options.h"

namespace fluid {

struct AmpReport {
  /// The precision chosen for an op that reads floats.
  struct Choice {
    const ir::Op* op = nullptr;
    DType dtype = DType::f32;
    std::string reason;
  };
  std::vector<Choice> ops;   ///< in graph order
  std::vector<Value> casts;  ///< the inserted casts
};

/// Chooses a precision for every op of a recorded graph and inserts casts of its operands.
AmpReport cast_for_amp(ir::Graph& graph, const AmpOptions& options);

/// Throws UserError when a name in the lists of `options` is neither an op nor a layer of
/// `recorded`, or is in both lists.
void check_amp_names(const ir::Graph& recorded, const AmpOptions& options);

}  // namespace fluid
