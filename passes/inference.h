#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/options.h"

namespace fluid {

/// Names of the outputs that Mode::predict omits: those that need a feed outside `options.feeds`.
/// Empty if `options.feeds` is empty. Exact only after the ops of the program have been replaced by
/// their inference forms.
std::vector<std::string> omitted_outputs(const ir::Program& program, const Options& options);

}  // namespace fluid
