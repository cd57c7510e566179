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
  Options passes = {};        ///< what all steps have in common
  bool prefetch = true;       ///< as many slots for feeds as the place uses; else one
  int64_t micro_batches = 1;  ///< slices that the batch of a training step is cut into
  MemoryLimit memory = {};    ///< of the arena
  std::optional<ProfileOptions> profile = {};
  SampleFinder find_sample = {};
  int feed_slots(const Target& target) const { return prefetch ? target.feed_slots() : 1; }
};

/// The options of a session on `place`, from those that users give. `fluidrun plan` plans steps
/// with them, too.
SessionOptions session_options(const ExecutorOptions& options, Place place = cpu());

}  // namespace fluid
