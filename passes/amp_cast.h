#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/options.h"

namespace fluid {

struct AmpReport {
  /// The precision chosen for an op that reads floats, and the reason.
  struct Choice {
    const ir::Op* op = nullptr;
    DType dtype = DType::f32;
    std::string reason;
  };
  std::vector<Choice> ops;   ///< one choice per op that reads floats, in graph order
  std::vector<Value> casts;  ///< results of the inserted casts
};

/// Applies automatic mixed precision to a recorded graph. Chooses a precision for every op that
/// reads floats, inserts casts of the operands, and reports the choices.
AmpReport cast_for_amp(ir::Graph& graph, const AmpOptions& options);

/// Throws UserError if a name in AmpOptions::in_f32 or in_half is in both lists, or is neither an
/// op nor a layer of `recorded`.
void check_amp_names(const ir::Graph& recorded, const AmpOptions& options);

}  // namespace fluid
