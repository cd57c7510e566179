#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Appends a scan that computes the gradients of `scan`. The appended scan runs the steps in
/// reverse order. Each step recomputes the elementwise values of the forward step. It reads the
/// carries and the results of all other forward ops from stacked results of `scan`. Appends these
/// results to `scan` if they are missing. `dout`: gradients of the results, null for none.
/// `active`: whether the gradient of each operand is needed. `reason`: see Backward. Returns one
/// gradient per operand, null for none.
Values append_scan_gradient(ir::Op& scan, const Values& dout, const std::vector<bool>& active,
                            const std::string& reason);

}  // namespace fluid
