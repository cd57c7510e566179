#pragma once

#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Replaces `ops` of the main graph, given in their order, by one `fused` op in the last one's
/// place, and returns it. Its operands are the values read from outside, by first use; its results
/// the values that outside or the graph's outputs read, in order; the rest is gone. No op between
/// the first and the last but `ops` themselves may read their results.
ir::Op* compose(ir::Program& program, const std::vector<ir::Op*>& ops);

}  // namespace fluid
