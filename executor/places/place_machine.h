#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "executor/gpu_libraries/gpu_workspace.h"
#include "executor/options/place.h"
#include "passes/target.h"

namespace fluid {

/// The target of `place` without a device, for planning. `threads`: CPU threads; 0: as many as an
/// executor would use. `libraries`, `cache_dir`: see ExecutorOptions. The cache records the ops
/// that the libraries cannot compute. Throws as an executor does when there is no such place.
std::unique_ptr<Target> target_of(Place place, int threads, const GpuLibraries& libraries = {},
                                  const std::string& cache_dir = {});

/// Everything about a place that affects the times of steps, as text. `threads`: as in target_of().
std::string machine_text(Place place, int threads);

/// The upper limit on a session's arena, and whether the user set it.
struct MemoryLimit {
  int64_t bytes = 0;
  std::string text;    ///< for messages: "the limit is 4.00 KiB"
  bool asked = false;  ///< set by the user; otherwise the place's memory
};

/// The total memory of a place.
MemoryLimit memory_of(Place place);

}  // namespace fluid
