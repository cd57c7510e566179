#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "executor/gpu/gpu_workspace.h"
#include "executor/options/place.h"
#include "passes/target.h"

namespace fluid {

/// A place as the passes see it, which runs nothing. `threads`: of the CPU, 0: as many as an
/// executor would take; `libraries` and `cache_dir`, where it is kept what these cannot compute: as
/// in ExecutorOptions. Throws what an executor there would, when there is no such place.
std::unique_ptr<Target> target_of(Place place, int threads, const GpuLibraries& libraries = {},
                                  const std::string& cache_dir = {});

/// All of a place that the times of steps depend on, as text. `threads`: as above.
std::string machine_text(Place place, int threads);

/// Bytes that the steps of a session may need, and what says so.
struct MemoryLimit {
  int64_t bytes = 0;
  std::string text;    ///< "the limit is 4.00 KiB"
  bool asked = false;  ///< by the user; otherwise there is no more
};

/// All the memory of a place.
MemoryLimit memory_of(Place place);

}  // namespace fluid
