#pragma once

namespace fluid {

/// From now on processes that are forked from this one run no steps: threads do not go over into
/// them, nor does what a GPU's driver keeps, so that a step would wait for ever.
void forbid_forks();

/// Throws UserError in a process that was forked after forbid_forks().
void refuse_forks();

}  // namespace fluid
