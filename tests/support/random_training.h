#pragma once

#include <cstddef>
#include <cstdint>

#include "frontend/program.h"
#include "ir/tensor.h"

namespace fluid::testing {

/// A random program that can be trained, with its batch: ops over a feed, parameters and labels,
/// with values that reductions, comparisons and stores share.
struct RandomTraining {
  Program program;
  Batch batch;
};
/// Draws 2 to `most_ops` times ops of the vocabulary; of these, it leaves out ops that do not fit.
/// The same for the same arguments.
RandomTraining random_training(uint64_t seed, size_t most_ops);

}  // namespace fluid::testing
