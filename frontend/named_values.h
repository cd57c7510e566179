#pragma once

#include <string>
#include <vector>

#include "frontend/program.h"

namespace fluid {

/// Makes training steps store the gradient of parameter `name` in the state `name` + ".gradient",
/// which Executor::parameter() reads. This is the gradient of the whole batch, before clipping. A
/// step whose update is skipped does not change the state. Checkpoints do not contain the state.
/// Throws UserError if there is no such parameter, or if it is frozen or sparse.
void retain_gradient(Program& program, const std::string& name, const Loc& loc = Loc::here());

/// Returns the value named `name`. If there is none, returns the last value recorded by the layer
/// `name`. Returns an empty Value if neither exists or `name` is empty.
Value named_value(Program& program, const std::string& name);

/// Returns whether `name` is a value or layer in the body of a scan. The scan computes such
/// a value once per step.
bool is_value_of_scan_step(const Program& program, const std::string& name);

/// Returns the names of all values and layers that named_value() finds, sorted.
std::vector<std::string> value_names(const Program& program);

}  // namespace fluid
