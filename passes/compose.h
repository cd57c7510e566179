#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Appends to the main graph a `fused` op that does what `ops`, given in their order, do: its body
/// is a new graph, its operands the values read from outside, by first use, its results `results`.
/// `ops` and their readers stay as they are, and `param` is the parameter whose gradient it gives,
/// if any.
ir::Op* append_fused(ir::Program& program, const std::vector<const ir::Op*>& ops,
                     const Values& results, const std::string& param);

/// Replaces chains of ops of the main graph, each by one `fused` op in the place of its last, and
/// returns these. A chain's ops are given in their order, the chains in that of their last ops; no
/// op is in two. No op between a chain's first and last but its own may read their results. What
/// outside or the graph's outputs read are the fused op's results, in order; the rest is gone.
std::vector<ir::Op*> compose(ir::Program& program, const std::vector<std::vector<ir::Op*>>& chains);

}  // namespace fluid
