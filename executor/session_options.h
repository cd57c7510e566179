#pragma once

#include "executor/executor.h"
#include "executor/session.h"

namespace fluid {

/// What a session on `place` is told of the options that users give: what a step is compiled with,
/// and what `fluidrun plan` must plan it with.
SessionOptions session_options(const ExecutorOptions& options, Place place = cpu());

/// Throws UserError for options that do not go with statistics shared by processes.
void check_shared_statistics(const ExecutorOptions& options);

}  // namespace fluid
