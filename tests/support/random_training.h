#pragma once

#include <cstdint>

#include "frontend/program.h"
#include "ir/tensor.h"

namespace fluid::testing {

/// A random program that can be trained, with its batch: 8 to 24 ops over a feed, parameters and
/// labels, with values that reductions, comparisons and stores share. The same for a seed.
struct RandomTraining {
  Program program;
  Batch batch;
};
RandomTraining random_training(uint64_t seed);

}  // namespace fluid::testing
