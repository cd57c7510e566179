#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/comm/process_group.h"
#include "executor/session/session.h"

namespace fluid {

// All functions are collective. All ranks must pass the same variables in the same order.

/// Broadcasts rank 0's values of `variables`. Skips sharded variables.
void send(Session& session, const std::vector<Variable>& variables);

/// The value of `variable`. A sharded variable is gathered on rank 0; other ranks get nothing.
std::optional<Tensor> whole(Session& session, const ProcessGroup& group, const Variable& variable);

/// Scatters the values of all sharded variables from rank 0. `whole` returns a variable's full
/// value by name on rank 0, and is empty on other ranks.
void scatter(Session& session, const ProcessGroup& group,
             const std::function<Tensor(const std::string&)>& whole);

}  // namespace fluid
