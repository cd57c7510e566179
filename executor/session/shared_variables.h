#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/comm/process_group.h"
#include "executor/session/session.h"

namespace fluid {

// Calls of all ranks, which name the same variables in the same order.

/// Gives every rank rank 0's values, but of variables of which each has a part of its own.
void send(Session& session, const std::vector<Variable>& variables);

/// A variable's value; of one that the processes share, all of it, on rank 0 alone.
std::optional<Tensor> whole(Session& session, const ProcessGroup& group, const Variable& variable);

/// Gives every rank its parts of the variables that the processes share, whose
/// values `whole` gives by name, on rank 0; elsewhere it is empty.
void scatter(Session& session, const ProcessGroup& group,
             const std::function<Tensor(const std::string&)>& whole);

}  // namespace fluid
