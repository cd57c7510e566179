#pragma once

#include <vector>

#include "executor/executor.h"
#include "executor/fluidrun/resident.h"
#include "executor/options/world.h"
#include "frontend/files/byte_source.h"
#include "frontend/readers/reader.h"

namespace fluid {

/// Says on stderr what an executor with prepared steps takes: its arena, and what takes memory
/// outside it. `before`: when the process began; `opened`: once the readers were open.
void describe_memory(const Executor& executor, const std::vector<const Reader*>& readers,
                     const Resident& before, const Resident& opened);

/// Says what writing and reading files of variables takes: a piece of a file, or a copy of the
/// variables where they lie on a GPU or are gathered from several processes.
void describe_saving(const Executor& executor, const World& world);

}  // namespace fluid
