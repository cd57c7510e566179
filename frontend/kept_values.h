#pragma once

#include <string>
#include <vector>

#include "frontend/program.h"

namespace fluid {

/// Makes training steps keep the gradient of parameter `name` in the state `name` + ".gradient",
/// which Executor::parameter() reads. It is the gradient of the whole batch that the optimizer
/// gets, before clipping; a step whose update is skipped leaves the state as it is. The program
/// gets a new hash: its checkpoints do not fit the program without kept gradients. Throws UserError
/// if there is no such parameter, or if it does not train or is sparse.
void keep_gradient(Program& program, const std::string& name, const Loc& loc = Loc::here());

/// The value that the layer `name` computes, the last one that it recorded, or the value called
/// `name` in the program's text. Null if there is none or `name` is empty.
Value named_value(Program& program, const std::string& name);

/// The names for which named_value() finds a value.
std::vector<std::string> value_names(const Program& program);

}  // namespace fluid
