#pragma once

#include <cstdint>
#include <optional>

#include "executor/device/device.h"
#include "executor/options/executor_options.h"
#include "executor/options/place.h"
#include "executor/places/place_machine.h"
#include "passes/options.h"

namespace fluid {

struct SessionOptions {
  uint64_t seed = 0;
  Options passes = {};        ///< options that all steps share
  bool prefetch = true;       ///< use as many feed slots as the place supports, not only one
  int64_t micro_batches = 1;  ///< micro-batches per training step
  MemoryLimit memory = {};    ///< upper limit on the size of the arena
  std::optional<ProfileOptions> profile = {};
  SampleFinder find_sample = {};
  int feed_slots(const Target& target) const { return prefetch ? target.feed_slots() : 1; }
};

/// Derives a session's options on `place` from the user's options. `fluidrun plan` uses them too.
SessionOptions session_options(const ExecutorOptions& options, Place place = cpu());

}  // namespace fluid
