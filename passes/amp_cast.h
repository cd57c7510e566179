#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/options.h"

namespace fluid {

struct AmpReport {
  /// The precision chosen for an op that reads floats, and why.
  struct Choice {
    const ir::Op* op = nullptr;
    DType dtype = DType::f32;
    std::string reason;
  };
  std::vector<Choice> ops;   ///< one choice per op that reads floats, in graph order
  std::vector<Value> casts;  ///< results of the inserted casts
};

/// Automatic mixed precision: chooses a precision for every op of a recorded graph that reads
/// floats and inserts casts of its operands. Reports the choices.
AmpReport cast_for_amp(ir::Graph& graph, const AmpOptions& options);

/// Throws UserError when a name in AmpOptions::in_f32 or in_half is neither an op nor a layer of
/// `recorded`, or is in both lists.
void check_amp_names(const ir::Graph& recorded, const AmpOptions& options);

}  // namespace fluid
