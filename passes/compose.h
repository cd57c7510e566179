#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Appends a `fused` op to the main graph and returns it. The body of the fused op is a new graph
/// with copies of `ops`, which must be in graph order. The operands are the values that `ops` read
/// from other ops, in order of first use; the results correspond to `results`. Does not change
/// `ops` or their users. If the fused op computes the gradient or update of a parameter, `param`
/// is its name; else "".
ir::Op* append_fused(ir::Program& program, const std::vector<const ir::Op*>& ops,
                     const Values& results, const std::string& param);

/// Replaces each chain of ops of the main graph by a `fused` op at the position of the chain's last
/// op. Returns the fused ops. The ops of a chain must be in graph order; chains must be disjoint
/// and ordered by their last ops. Between the first and last op of a chain, only ops of the chain
/// may read results of the chain. Results that other ops or graph outputs read become results of
/// the fused op.
std::vector<ir::Op*> fuse_chains(ir::Program& program,
                                 const std::vector<std::vector<ir::Op*>>& chains);

}  // namespace fluid
