#pragma once

// Schedules a group that has too few rows for a GPU as several passes.
//
// A sweep computes the reductions of a row, and what reads them, in one block. In a batch
// normalisation with channels innermost, the rows are the channels, and adjacent threads take
// adjacent channels. 64 channels then keep 16 threads busy, each of which walks over all pixels of
// the batch. Here each stage is a pass over all its results. A reduction of many terms to few
// results is cut into parts, which another pass combines in order.

#include <vector>

#include "codegen/schedule_sweep.h"

namespace fluid {

/// Whether the passes `sweep` of `group`, with teams chosen, leave most of a GPU idle where
/// staged() would not.
bool leaves_idle(const Group& group, const std::vector<kir::Kernel>& sweep);

/// Returns the group's passes, one stage after the other. Buffers other than scratch are those of a
/// sweep. Only valid if leaves_idle().
std::vector<kir::Kernel> staged(const Group& group, const std::string& name);

}  // namespace fluid
