#pragma once

namespace fluid {

/// Makes check_not_forked() throw in child processes that are forked later. Worker threads and GPU
/// driver state do not survive fork(), so a step in the child would hang.
void mark_fork_unsafe();

/// Throws UserError in a process that was forked after mark_fork_unsafe().
void check_not_forked();

}  // namespace fluid
