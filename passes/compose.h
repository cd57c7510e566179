#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Appends a `fused` op to the main graph. Its body is a new graph with copies of `ops`, which must
/// be in graph order. Its operands are the values that `ops` read from outside, by first use; its
/// results are copies of `results`. `ops` and their readers do not change. `param` names the
/// parameter whose gradient the op computes, if any.
ir::Op* append_fused(ir::Program& program, const std::vector<const ir::Op*>& ops,
                     const Values& results, const std::string& param);

/// Replaces each chain of ops of the main graph by a `fused` op at the position of the chain's last
/// op. Returns the fused ops. Ops of a chain are in graph order; chains are disjoint and ordered by
/// their last ops. Between the first and last op of a chain, only ops of the chain may read its
/// results. The results that other ops or graph outputs read become results of the fused op.
std::vector<ir::Op*> compose(ir::Program& program, const std::vector<std::vector<ir::Op*>>& chains);

}  // namespace fluid
