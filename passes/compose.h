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

/// Replaces `ops` of the main graph, given in their order, by one `fused` op in the last one's
/// place, and returns it. Its results are the values that outside or the graph's outputs read, in
/// order; the rest is gone. No op between the first and the last but `ops` themselves may read
/// their results.
ir::Op* compose(ir::Program& program, const std::vector<ir::Op*>& ops);

}  // namespace fluid
