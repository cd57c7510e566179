#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/options.h"

namespace fluid {

/// Names of the outputs that Mode::predict omits, because they need a feed that is not in
/// `options.feeds`. Empty if `options.feeds` is empty. Exact only for a program whose ops have
/// their inference forms.
std::vector<std::string> omitted_outputs(const ir::Program& program, const Options& options);

}  // namespace fluid
