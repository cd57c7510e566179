#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/options.h"

namespace fluid {

/// Names of the outputs that predict leaves out because they need a feed that is not among
/// `options.feeds`. Exact on a program in inference mode; none when `options.feeds` is empty.
std::vector<std::string> outputs_left_out(const ir::Program& program, const Options& options);

}  // namespace fluid
