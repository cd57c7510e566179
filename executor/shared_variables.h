#pragma once

#include <optional>
#include <vector>

#include "executor/process_group.h"
#include "executor/session.h"
#include "executor/snapshot.h"

namespace fluid {

// Calls of all ranks, which name the same variables in the same order.

/// Gives every rank rank 0's values, but of variables of which each has a part of its own.
void send(Session& session, const std::vector<Variable>& variables);

/// A variable's value; of one that the processes share, all of it, on rank 0 alone.
std::optional<Tensor> whole(Session& session, const ProcessGroup& group, const Variable& variable);

/// Gives every rank its parts of the variables that the processes share, which are whole in
/// `from`, null on all ranks but rank 0.
void scatter(Session& session, const ProcessGroup& group, const Snapshot* from);

}  // namespace fluid
