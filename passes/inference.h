#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/options.h"

namespace fluid {

/// Names of the outputs that mode `predict` omits, because they need a feed outside of
/// `options.feeds`. Empty if `options.feeds` is empty. Exact only for a program in inference mode.
std::vector<std::string> omitted_outputs(const ir::Program& program, const Options& options);

}  // namespace fluid
