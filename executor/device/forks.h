#pragma once

namespace fluid {

/// Makes check_not_forked() throw in processes forked from this one. Neither worker threads nor a
/// GPU's driver state survive fork(), so a step in the child would hang.
void mark_fork_unsafe();

/// Throws UserError in a process that was forked after mark_fork_unsafe().
void check_not_forked();

}  // namespace fluid
