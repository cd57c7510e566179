#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "executor/executor.h"
#include "executor/options/world.h"
#include "frontend/files/byte_source.h"
#include "frontend/readers/reader.h"

namespace fluid {

/// Resident memory of this process, in bytes. All 0 on systems without /proc/self/smaps.
struct Resident {
  int64_t total = 0;
  int64_t peak = 0;                      ///< largest total so far
  std::map<std::string, int64_t> files;  ///< code and tables of programs and libraries, by name
  int64_t made_code = 0;                 ///< generated machine code
  int64_t other = 0;                     ///< heap, stacks, the arena
};
Resident resident_now();

constexpr int64_t kListedOwner = 1 << 20;

/// Owners of memory outside the arena and their bytes, from kListedOwner on, in descending order.
using Owners = std::vector<std::pair<std::string, int64_t>>;

/// The owners of the memory that the process gained since `before`, and of the readers' buffers,
/// even where not touched yet. `opened`: measured after the readers were opened and before the
/// executor of `arena` compiled its steps.
Owners owners_outside(const MemoryUse& arena, const Resident& before, const Resident& opened,
                      const std::vector<const Reader*>& readers);

/// Prints to stderr the arena of an executor with prepared steps, and the owners of memory outside
/// it. `before`: measured at the start of the process. `opened`: measured after the readers were
/// opened.
void describe_memory(const Executor& executor, const std::vector<const Reader*>& readers,
                     const Resident& before, const Resident& opened);

/// Prints to stderr the memory for saving and loading variables: a piece of a file on the CPU, a
/// copy of the variables on a GPU or with several ranks.
void describe_saving(const Executor& executor, const World& world);

}  // namespace fluid
