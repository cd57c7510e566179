#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "executor/gpu_libraries/gpu_workspace.h"
#include "executor/options/place.h"
#include "passes/target.h"

namespace fluid {

/// Creates the compilation target of `place` for planning. Does not open the device. `threads`: CPU
/// threads; 0: the executor's default. `libraries` and `cache_dir`: as in ExecutorOptions. The
/// cache directory holds the measured rates of the CPU, and the list of ops that a GPU's libraries
/// cannot compute. `tune`: CpuOptions::tune. Throws UserError or DeviceError when there is no such
/// place.
std::unique_ptr<Target> target_of(Place place, int threads, const GpuLibraryOptions& libraries = {},
                                  const std::string& cache_dir = {}, bool tune = false);

/// Describes, as text, the hardware and library versions of `place` that affect step times.
/// `threads` and `cache_dir`: as in target_of().
std::string describe_machine(Place place, int threads, const std::string& cache_dir);

/// The upper limit on the size of a session's arena: set by the user, or the memory of the place.
struct MemoryLimit {
  int64_t bytes = 0;
  std::string text;          ///< text for messages, such as "the limit is 4.00 KiB"
  bool set_by_user = false;  ///< whether the user set the limit
};

/// Returns the total memory of `place` as a limit.
MemoryLimit memory_limit_of(Place place);

}  // namespace fluid
