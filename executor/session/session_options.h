#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "executor/device/device.h"
#include "executor/options/executor_options.h"
#include "executor/options/place.h"
#include "executor/places/place_machine.h"
#include "passes/options.h"

namespace fluid {

struct SessionOptions {
  uint64_t seed = 0;
  Options passes = {};        ///< options of the pass pipeline, common to all steps
  bool prefetch = true;       ///< use two feed slots if the place supports two
  int64_t micro_batches = 1;  ///< micro-batches per training step
  /// Directory of the ProgramCache and the WeightCache; empty: none.
  std::string kernel_cache_dir = {};
  MemoryLimit memory = {};  ///< upper limit on the size of the arena
  std::optional<ProfileOptions> profile = {};
  SampleFinder find_sample = {};
  int feed_slots(const Target& target) const { return prefetch ? target.feed_slots() : 1; }
};

/// Converts the user's options to session options for `place`. `fluidrun plan` uses the same
/// function.
SessionOptions session_options(const ExecutorOptions& options, Place place = cpu());

}  // namespace fluid
