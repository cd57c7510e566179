#pragma once

#include <string>

#include "frontend/program.h"

namespace fluid {

/// Returns the name of the output that is the training loss; empty if the loss is not an output.
std::string loss_output(const Program& program);

}  // namespace fluid
