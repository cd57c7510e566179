#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Appends a scan that computes the gradients of `scan` by running its steps in the opposite order.
/// Each step computes the elementwise values of the forward step again. It reads the carries and
/// the results of all other ops from sequences that `scan` collects: appends results to `scan` for
/// them. `dout`: gradients of the results, null for none. `active`: whether the gradient of each
/// operand is needed. `reason` as in Backward. Returns one gradient per operand, null for none.
Values append_scan_gradient(ir::Op& scan, const Values& dout, const std::vector<bool>& active,
                            const std::string& reason);

}  // namespace fluid
