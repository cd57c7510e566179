#pragma once

namespace fluid {

/// Makes refuse_forks() throw in processes forked from this one. Neither worker threads nor a GPU's
/// driver state survive fork(), so a step in the child would hang.
void forbid_forks();

/// Throws UserError in a process that was forked after forbid_forks().
void refuse_forks();

}  // namespace fluid
