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

/// Resident set size (RSS) of this process in bytes, by kind of memory. All 0 on systems without
/// /proc/self/smaps.
struct ResidentMemory {
  int64_t total = 0;
  int64_t peak = 0;  ///< largest RSS since the process started
  /// File name of a mapped program or library -> its resident bytes.
  std::map<std::string, int64_t> files;
  int64_t generated_code = 0;  ///< machine code of generated kernels
  int64_t other = 0;           ///< heap, stacks and arena
};
ResidentMemory resident_memory();

constexpr int64_t kMinListedBytes = 1 << 20;  ///< minimum bytes of an entry of a MemoryBreakdown

/// Bytes of memory by category, such as "compiled kernels", in descending order of bytes. Contains
/// no entry of less than kMinListedBytes.
using MemoryBreakdown = std::vector<std::pair<std::string, int64_t>>;

/// Returns a breakdown of the memory that the process has allocated since `before` was measured.
/// Excludes the arena. Includes all buffers of the readers, even buffers that are not resident yet.
/// `arena`: total and resident bytes of the arena. `opened`: RSS after the readers were opened and
/// before the executor compiled its steps.
MemoryBreakdown memory_outside_arena(const MemoryUse& arena, const ResidentMemory& before,
                                     const ResidentMemory& opened,
                                     const std::vector<const Reader*>& readers);

/// Prints to stderr the size of the arena, and a breakdown of the memory outside the arena. The
/// steps of `executor` must be prepared. `before`: RSS at the start of the process. `opened`: RSS
/// after the readers were opened.
void print_memory_report(const Executor& executor, const std::vector<const Reader*>& readers,
                         const ResidentMemory& before, const ResidentMemory& opened);

/// Prints to stderr the additional memory for saving and loading variables. In a single CPU
/// process, this is a file buffer. On a GPU or with several ranks, this is a copy of all variables.
void print_checkpoint_memory(const Executor& executor, const World& world);

}  // namespace fluid
