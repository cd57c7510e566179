#pragma once

// A group whose rows are too few for a GPU, as several passes.
//
// A sweep keeps a row in one block: its reductions, and then what reads them. Where channels lie
// innermost, the rows of a batch normalisation are its channels, and neighbouring threads take
// neighbouring ones: 64 channels then keep 16 threads busy, while each walks over all pixels of the
// batch. Here each stage is a pass over all its results, and a reduction of many terms for few
// results is cut into parts of terms, which a pass of its own combines in their order.

#include <vector>

#include "codegen/schedule_sweep.h"

namespace fluid {

/// Whether the passes of `group`, which are `sweep`, leave a GPU all but idle, and staged() does
/// not. The threads of a team are chosen.
bool leaves_idle(const Group& group, const std::vector<kir::Kernel>& sweep);

/// The group's passes, one stage after the other: the buffers are those of a sweep, but for
/// scratch. For leaves_idle() alone.
std::vector<kir::Kernel> staged(const Group& group, const std::string& name);

}  // namespace fluid
