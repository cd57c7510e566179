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

/// The memory that the system has given this process, by what it holds. All 0 on systems without
/// /proc/self/smaps.
struct Resident {
  int64_t total = 0;
  int64_t peak = 0;                      ///< the largest total so far
  std::map<std::string, int64_t> files;  ///< code and tables of programs and libraries, by name
  int64_t made_code = 0;                 ///< machine code made by this process
  int64_t other = 0;                     ///< heap, stacks, the arena
};
Resident resident_now();

constexpr int64_t kListedOwner = 1 << 20;

/// What takes memory outside the arena, with bytes: the largest first, kListedOwner and more.
using Owners = std::vector<std::pair<std::string, int64_t>>;

/// What has come since `before`, measured, and what the readers will still take. Between `before`
/// and `opened` they were opened; since then the steps of an executor were compiled whose arena is
/// `arena`.
Owners owners_outside(const MemoryUse& arena, const Resident& before, const Resident& opened,
                      const std::vector<const Reader*>& readers);

/// Says on stderr what an executor with prepared steps takes: its arena, and what takes memory
/// outside it. `before`: when the process began; `opened`: once the readers were open.
void describe_memory(const Executor& executor, const std::vector<const Reader*>& readers,
                     const Resident& before, const Resident& opened);

/// Says what writing and reading files of variables takes: a piece of a file, or a copy of the
/// variables where they lie on a GPU or are gathered from several processes.
void describe_saving(const Executor& executor, const World& world);

}  // namespace fluid
