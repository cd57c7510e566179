#pragma once

// Schedules a group that has too few rows for a GPU as several kernels.
//
// A sweep computes the reductions of a row, and the sinks that read them, in one block. In a batch
// normalisation with channels innermost, the rows are the channels, and adjacent threads take
// adjacent channels. 64 channels then keep 16 threads busy, each of which walks over all pixels of
// the batch. Here the kernels of a stage compute all its results in parallel. A reduction of many
// terms to few results is cut into parts, and another kernel combines the parts in order.

#include <vector>

#include "codegen/schedule_sweep.h"

namespace fluid {

/// Whether the kernels `sweep` of `group` leave most of a GPU idle and staged() would not. The team
/// sizes of `sweep` must be set.
bool leaves_idle(const Group& group, const std::vector<kir::Kernel>& sweep);

/// Returns the group's kernels, one stage after the other. They have the same buffers as a sweep,
/// except for scratch buffers. Only valid if leaves_idle().
std::vector<kir::Kernel> staged(const Group& group, const std::string& name);

}  // namespace fluid
